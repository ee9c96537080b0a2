//! What operators' tools ask for past the clients whose it is.

use crate::engine::partition::AdminMark;
use crate::engine::{PartId, Refusal};
use crate::runtime::broker::{Broker, answered};
use crate::runtime::mailroom::Waiting;
use crate::runtime::post::{Command, LedgerLetter};

impl Broker {
    /// WriteTxnMarkers: one marker in several partitions; each has its own result, in their order. On disk when this returns.
    /// Up to the first await the ledger has been asked, about all of them at once.
    pub async fn write_markers(&self, mark: AdminMark, parts: &[PartId]) -> Vec<Result<(), Refusal>> {
        let waiting: Vec<(PartId, Waiting<'_>)> =
            parts.iter().map(|part| (*part, self.router().mailroom.wait())).collect();
        let Some((_, first)) = waiting.first() else { return Vec::new() };
        let (first, parts) = (first.to, waiting.iter().map(|(part, waiting)| (*part, waiting.to)).collect());
        self.router().to_ledger(LedgerLetter::Ask(first, Command::WriteMarkers { mark, parts }));
        let mut results = Vec::with_capacity(waiting.len());
        for (_, waiting) in waiting {
            results.push(answered(waiting, Refusal::NotCoordinator).await.map(drop));
        }
        results
    }
}

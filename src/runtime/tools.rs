//! What operators' tools ask for past the clients whose it is.

use crate::engine::partition::AdminMark;
use crate::engine::{PartId, Refusal, TransactionalId};
use crate::runtime::broker::{Broker, answered};
use crate::runtime::mailroom::Waiting;
use crate::runtime::post::{Command, LedgerLetter};

impl Broker {
    /// Aborts an open transaction and fences its producer, for an operator. Its markers are on disk when this returns.
    ///
    /// # Errors
    /// `TransactionalIdNotFound`; `InvalidTxnState` when nothing is open; `ConcurrentTransactions` when it takes long;
    /// `NotCoordinator` when there is no room for the decision, or the process stops.
    pub async fn abort_txn(&self, id: TransactionalId) -> Result<(), Refusal> {
        self.ask(Command::AbortTxn { id }).await.map(drop)
    }

    /// Takes the id away from its owner, for an operator: what is open is aborted, and the epoch is raised in any case.
    ///
    /// # Errors
    /// As [`abort_txn`](Self::abort_txn), but that nothing is open is none.
    pub async fn fence_owner(&self, id: TransactionalId) -> Result<(), Refusal> {
        let described = self.describe_txns(vec![id.clone()]).await?.into_iter().next();
        let Some(Ok(described)) = described else { return Err(Refusal::TransactionalIdNotFound) };
        match self.abort_txn(id.clone()).await {
            Err(Refusal::InvalidTxnState) => self.init_producer(Some(id), described.timeout_ms, None).await.map(drop),
            other => other,
        }
    }

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

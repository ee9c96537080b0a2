//! What operators' tools ask for past the clients whose it is.

use crate::engine::ledger::show::Described;
use crate::engine::partition::AdminMark;
use crate::engine::{PartId, Refusal, TransactionalId};
use crate::runtime::broker::{Broker, answered};
use crate::runtime::mailroom::Waiting;
use crate::runtime::post::{Command, LedgerLetter};

impl Broker {
    /// Aborts an open transaction and fences its producer, for an operator. Where its own abort is being carried out there is
    /// nothing to fence it for. Its markers are as far as EndTxn's would be when this returns.
    ///
    /// # Errors
    /// `TransactionalIdNotFound`; `InvalidTxnState` when nothing is open; `ConcurrentTransactions` when it takes long, and is
    /// done later; `KafkaStorageError` where a marker waits for a damaged partition; `NotCoordinator` when there is no room for
    /// the decision, or the process stops.
    pub async fn abort_txn(&self, id: TransactionalId) -> Result<(), Refusal> {
        self.ask(Command::AbortTxn { id }).await.map(drop)
    }

    /// Takes the id away from its owner, for an operator: what is open is aborted, and the epoch is raised in any case.
    ///
    /// # Errors
    /// As [`abort_txn`](Self::abort_txn), but that nothing is open is none.
    pub async fn fence_owner(&self, id: TransactionalId, max_timeout_ms: i32) -> Result<(), Refusal> {
        let before = self.owner(&id).await?;
        match self.abort_txn(id.clone()).await {
            Ok(()) | Err(Refusal::InvalidTxnState) => {}
            refused @ Err(_) => return refused,
        }
        let now = self.owner(&id).await?;
        if now.producer != before.producer {
            return Ok(());
        }
        // Nothing was open, or its own abort came first: whoever takes the id over raises the epoch.
        self.init_producer(Some(id), now.timeout_ms.min(max_timeout_ms), None).await.map(drop)
    }

    async fn owner(&self, id: &TransactionalId) -> Result<Described, Refusal> {
        let described = self.describe_txns(vec![id.clone()]).await?.into_iter().next();
        described.and_then(Result::ok).ok_or(Refusal::TransactionalIdNotFound)
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

//! What operators' tools ask for past the clients whose it is.

use std::collections::BTreeMap;

use crate::engine::ledger::show::{Described, Find};
use crate::engine::partition::AdminMark;
use crate::engine::{GroupId, Offset, PartId, Refusal, TransactionalId};
use crate::runtime::broker::{Broker, answered, misplaced};
use crate::runtime::ledger::answers::OFFSETS_AT_ONCE;
use crate::runtime::mailroom::Waiting;
use crate::runtime::post::{Answer, Command, LedgerLetter, Show};

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

    /// Some transactions, for an operator, and how many there are.
    ///
    /// # Errors
    /// Only when the process stops.
    pub async fn find_txns(&self, find: Find) -> Result<(usize, Vec<Described>), Refusal> {
        let Answer::Found(total, found) = self.ask(Command::Show(Show::Find(find))).await? else {
            return Err(misplaced());
        };
        Ok((total, found))
    }

    /// Whose these producer ids are, as far as they are anybody's.
    ///
    /// # Errors
    /// Only when the process stops.
    pub async fn describe_owners(&self, producers: Vec<i64>) -> Result<Vec<Described>, Refusal> {
        let Answer::Txns(txns) = self.ask(Command::Show(Show::Owners(producers))).await? else {
            return Err(misplaced());
        };
        Ok(txns.into_iter().flatten().collect())
    }

    /// Every committed offset as readers see it, asked for in slices: no decision waits for all of them.
    ///
    /// # Errors
    /// Only when the process stops.
    pub async fn seen_offsets(&self) -> Result<BTreeMap<(GroupId, PartId), Offset>, Refusal> {
        let (mut all, mut from) = (BTreeMap::new(), None);
        loop {
            let Answer::SeenOffsets(slice) = self.ask(Command::Show(Show::Offsets(from))).await? else {
                return Err(misplaced());
            };
            let (full, before) = (slice.len() >= OFFSETS_AT_ONCE, all.len());
            from = slice.iter().map(|(group, part, _)| (group, part)).max().map(|(group, part)| (group.clone(), *part));
            all.extend(slice.into_iter().map(|(group, part, offset)| ((group, part), offset)));
            if !full || all.len() == before {
                return Ok(all);
            }
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

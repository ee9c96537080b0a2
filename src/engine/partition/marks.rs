//! Ending a transaction on this partition: the coordinator's markers, and those that a tool writes.

use super::Partition;
use super::grants::Permission;
use super::open::Aborted;
use super::producers::{Entry, Protocol, check_marker_epoch};
use crate::engine::{Now, Offset, Outcome, Producer, Refusal};

/// A marker that the coordinator owes this partition by a decision it has stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkOrder {
    /// Whose transaction, and the epoch of the marker (T-404).
    pub producer: Producer,
    /// What was decided.
    pub outcome: Outcome,
    /// The coordinator epoch to write into the marker.
    pub coordinator_epoch: i32,
    /// The log end that the decision noted: the transaction lies below, the producer's next one at or above it. `Offset::MAX` ends
    /// whatever is open, as for a transaction that no coordinator knows.
    pub sealed_end: Offset,
    /// Which transaction, to close its grant; `None` if it is not known.
    pub txn_no: Option<u64>,
    /// Whether the marker may be in the log already: after a restart, or at a second try.
    pub redo: bool,
}

/// A marker that a tool asks for, past the coordinator (WriteTxnMarkers, T-840).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdminMark {
    /// Whose transaction, and the epoch that the tool believes in.
    pub producer: Producer,
    /// How it ends.
    pub outcome: Outcome,
    /// The coordinator epoch that the tool believes in (T-407).
    pub coordinator_epoch: i32,
    /// By which rule the epoch is judged (T-406).
    pub protocol: Protocol,
}

/// A marker with its place in the log; the state is as if it were there, its bytes are to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Where the marker lies.
    pub offset: Offset,
    /// First offset of the transaction it closes; `None` if none was open, which is written all the same (T-405).
    pub closes: Option<Offset>,
    /// The entry for the transaction index, if it aborts one (T-505).
    pub aborted: Option<Aborted>,
}

/// What an order of the coordinator comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkStep {
    /// The marker is to be written.
    Write(Written),
    /// It is in the log already (storage 4.3); count it as done.
    AlreadyDone,
    /// A higher epoch has written here, so what is open is not this transaction; count it as done, and say so (T-413).
    Fenced,
}

impl Partition {
    /// Carries out what the coordinator owes. The grant of the transaction is gone afterwards, whatever comes of it.
    pub fn mark(&mut self, order: &MarkOrder, now: Now) -> MarkStep {
        self.grants.close(order.producer, order.txn_no);
        let entry = self.producers.get(&order.producer.id);
        if check_marker_epoch(entry, order.producer.epoch, Protocol::Classic).is_err() {
            return MarkStep::Fenced;
        }
        match entry.and_then(|entry| entry.open) {
            // The producer's next transaction, maybe of the same epoch: its end is not decided yet.
            Some(first) if first >= order.sealed_end => return MarkStep::AlreadyDone,
            Some(_) => {}
            None if order.redo && entry.is_some_and(|entry| entry.epoch == order.producer.epoch) => {
                return MarkStep::AlreadyDone;
            }
            // Nothing to close. At the first try it is written all the same (T-405). At a later one, an epoch that was
            // never seen here proves that the marker is not in the log; and it must be, for it fences (T-404).
            None => {}
        }
        MarkStep::Write(self.append_marker(order.producer, order.outcome, order.coordinator_epoch, now))
    }

    /// Carries out a tool's order, if its epochs fit (T-406, T-407).
    ///
    /// # Errors
    /// INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, or CONCURRENT_TRANSACTIONS where the marker would end a
    /// transaction that the coordinator has let in here: that one ends by a decision, in all its partitions, or it would
    /// be torn (T-846 R). Nothing has changed then.
    pub fn admin_mark(&mut self, mark: &AdminMark, now: Now) -> Result<Written, Refusal> {
        let entry = self.producers.get(&mark.producer.id);
        check_marker_epoch(entry, mark.producer.epoch, mark.protocol)?;
        if entry.is_some_and(|entry| mark.coordinator_epoch < entry.coordinator_epoch) {
            return Err(Refusal::TransactionCoordinatorFenced);
        }
        let ends = |known: &Permission| known.grant.producer.epoch <= mark.producer.epoch;
        if self.grants.get(mark.producer.id).is_some_and(ends) {
            return Err(Refusal::ConcurrentTransactions);
        }
        Ok(self.append_marker(mark.producer, mark.outcome, mark.coordinator_epoch, now))
    }

    fn append_marker(&mut self, producer: Producer, outcome: Outcome, coordinator_epoch: i32, now: Now) -> Written {
        let offset = self.log_end;
        self.log_end = offset.saturating_add(1);
        let closes = self.end_transaction(producer, coordinator_epoch, now);
        Written { offset, closes, aborted: self.aborted_by(outcome, producer.id, closes, offset) }
    }

    /// T-408: the marker's epochs are the producer's from now on, and its transaction is over. Gives its first offset.
    pub(super) fn end_transaction(&mut self, producer: Producer, coordinator_epoch: i32, now: Now) -> Option<Offset> {
        let entry = self.producers.entry(producer.id).or_insert_with(|| Entry::new(producer.epoch, now));
        entry.set_epoch(producer.epoch);
        entry.coordinator_epoch = coordinator_epoch;
        entry.arrived = now;
        let first = entry.open.take()?;
        self.open.end(first);
        Some(first)
    }

    /// The index entry of a transaction that a marker at `marker` has ended (T-505, T-506).
    pub(super) fn aborted_by(
        &self,
        outcome: Outcome,
        producer_id: i64,
        closes: Option<Offset>,
        marker: Offset,
    ) -> Option<Aborted> {
        match outcome {
            Outcome::Commit => None,
            Outcome::Abort => Some(Aborted {
                producer_id,
                first_offset: closes?,
                last_offset: marker,
                last_stable_offset: self.open.earliest().unwrap_or(marker.saturating_add(1)),
            }),
        }
    }
}

#[cfg(test)]
mod tests;

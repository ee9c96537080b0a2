//! What a start after an unclean end would have to verify, and the recovery points that keep it small.
//!
//! A point costs a few flushes of small files, so it is made when a partition owes much; or when all partitions
//! together do, by those that owe their share. Lazily, between two syncs, since nobody waits for it; a partition that never
//! comes to rest makes it all the same, or its debt would grow for as long as it is busy.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{PartitionOwner, Turn};
use crate::known_bugs::{Bug, is_in};
use crate::runtime::post::{LedgerLetter, Post};
use crate::store::StoreError;

/// All partitions together are to owe no more than this many times what one may: 1 GiB (storage rule 2.2).
const ALL_TIMES: u64 = 16;
/// However many there are, none makes a point for less than this part of what one may owe.
const LEAST_PART: u64 = 64;
/// A partition that is never at rest makes a point when it owes so many times what is due.
const PATIENCE_TIMES: u64 = 2;

/// What all partitions owe.
#[derive(Debug, Default)]
pub struct Debts {
    bytes: AtomicU64,
    holders: AtomicU64,
}

/// What one of them owes. It no longer counts when this is dropped.
pub(super) struct Debt {
    all: Arc<Debts>,
    bytes: u64,
}

impl Debts {
    /// Bytes that a start would have to verify now.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// From how many bytes on a partition makes a point, when one alone may owe `one_may`.
    fn due_from(&self, one_may: u64) -> u64 {
        let all_may = one_may.saturating_mul(ALL_TIMES);
        if self.bytes() < all_may {
            return one_may;
        }
        let share = all_may.checked_div(self.holders.load(Ordering::Relaxed)).unwrap_or(one_may);
        share.clamp(one_may.checked_div(LEAST_PART).unwrap_or(0), one_may)
    }
}

impl Debt {
    pub(super) fn none(all: &Arc<Debts>) -> Self {
        Self { all: Arc::clone(all), bytes: 0 }
    }

    pub(super) fn set(&mut self, bytes: u64) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        // Wraps when it falls; the sum over all partitions never does.
        self.all.bytes.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
        let holders = u64::from(bytes > 0).wrapping_sub(u64::from(before > 0));
        self.all.holders.fetch_add(holders, Ordering::Relaxed);
    }
}

impl Drop for Debt {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl PartitionOwner {
    pub(super) fn checkpoint_if_due(&mut self, turn: &mut Turn) -> Result<(), StoreError> {
        self.log.note_synced(i64::try_from(self.shared.lane.is_at()).unwrap_or(i64::MAX));
        let owed = self.log.debt();
        self.debt.set(owed);
        let due = self.settings.debts.due_from(self.settings.checkpoint_bytes);
        if owed < due {
            return Ok(());
        }
        if is_in(Bug::SnapshotNewerThanLog) {
            let synced = i64::try_from(self.shared.lane.is_at()).unwrap_or(0);
            return match self.log.checkpoint(&self.engine.snapshot(), synced) {
                Err(error @ StoreError::Broken(_)) => Err(error),
                Ok(_) | Err(StoreError::Full(_) | StoreError::Damaged(_)) => Ok(()),
            };
        }
        if !self.shared.is_idle() {
            if owed < due.saturating_mul(PATIENCE_TIMES) {
                return Ok(());
            }
            self.log.sync_everything()?;
            self.show_synced(turn);
        }
        self.checkpoint(turn)
    }

    /// Writes a recovery point over what is on disk. Lazy: nobody waits for the row.
    pub(super) fn checkpoint(&mut self, turn: &mut Turn) -> Result<(), StoreError> {
        if let Some(job) = self.log.take_unsynced() {
            job.run()?;
            self.show_synced(turn);
        }
        self.log.note_synced(self.engine.log_end());
        let result = self.log.checkpoint(&self.engine.snapshot(), self.engine.log_end());
        self.debt.set(self.log.debt());
        match result {
            Ok(Some(point)) => {
                // A reload need not begin earlier, whenever the row is stored.
                self.source.row.point = Some(point);
                self.source.row.log_start = self.engine.log_start();
                let letter = LedgerLetter::Checkpoint(self.part, point, self.engine.log_start());
                turn.at_once.push(Post::Ledger(letter));
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(StoreError::Full(why) | StoreError::Damaged(why)) => {
                tracing::warn!(part = self.part.0, why, "no recovery point: recovery after a crash will take longer");
                Ok(())
            }
            Err(error @ StoreError::Broken(_)) => Err(error),
        }
    }

    /// All that was written is on disk: readers may know, and whoever waited for it is answered.
    fn show_synced(&self, turn: &mut Turn) {
        self.shared.publish(self.view());
        turn.at_once.extend(self.shared.lane.reached(u64::try_from(self.engine.log_end()).unwrap_or(0)));
    }
}

#[cfg(test)]
mod tests;

//! What a partition remembers of each producer, and the rules of epochs and sequences (T-350 to T-356, T-406).

use std::collections::BTreeMap;

use crate::engine::batch::{Header, add_sequence};
use crate::engine::{Epoch, Now, Offset, Refusal};

/// Batches kept of each producer, against which a repeat is recognised (T-350).
pub const RETAINED_BATCHES: usize = 5;

/// Which rules a producer's transactions follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// `transaction.version` 0 and 1: one epoch for many transactions.
    Classic,
    /// `transaction.version` 2 (KIP-890): every transaction has its own epoch.
    EpochPerTransaction,
}

/// A batch that was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) last_sequence: i32,
    pub(super) last_offset: Offset,
    pub(super) offset_delta: i32,
    /// When it arrived by the broker's clock; what LogAppendTime stamps.
    pub(super) arrived_wall_ms: i64,
}

impl Batch {
    pub(super) fn base_offset(&self) -> Offset {
        self.last_offset.saturating_sub(i64::from(self.offset_delta))
    }

    /// Going back by a delta is going on by what is missing to 2^31 (T-351).
    fn base_sequence(&self) -> i32 {
        add_sequence(self.last_sequence, self.offset_delta.wrapping_neg())
    }
}

/// The newest batches of one producer and epoch, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Recent([Option<Batch>; RETAINED_BATCHES]);

impl Recent {
    pub(super) fn push(&mut self, batch: Batch) {
        self.0.rotate_right(1);
        if let Some(first) = self.0.first_mut() {
            *first = Some(batch);
        }
    }

    pub(super) fn newest(&self) -> Option<&Batch> {
        self.iter().next()
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Batch> {
        self.0.iter().flatten()
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

/// One producer as the partition knows it (T-350).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) epoch: Epoch,
    pub(super) recent: Recent,
    /// Of the newest marker, -1 before the first.
    pub(super) coordinator_epoch: i32,
    /// When the newest batch or marker arrived. The idle time is counted on the clock that never goes back (T-611 R).
    pub(super) arrived: Now,
    /// Where its open transaction begins.
    pub(super) open: Option<Offset>,
}

impl Entry {
    pub(super) fn new(epoch: Epoch, arrived: Now) -> Self {
        Self { epoch, recent: Recent::default(), coordinator_epoch: -1, arrived, open: None }
    }

    /// Takes the epoch of a batch or marker that is stored; a change of it forgets the batches (T-356, T-408).
    pub(super) fn set_epoch(&mut self, epoch: Epoch) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.recent.clear();
        }
    }

    /// The retained batch that `header` repeats (T-352): same epoch, same first and last sequence.
    pub(super) fn duplicate_of(&self, header: &Header) -> Option<&Batch> {
        if header.producer_epoch != self.epoch {
            return None;
        }
        let (base, last) = (header.base_sequence, header.last_sequence());
        self.recent.iter().find(|batch| batch.last_sequence == last && batch.base_sequence() == base)
    }
}

pub(super) type Producers = BTreeMap<i64, Entry>;

/// Whether the batch's epoch may write here (T-353).
pub(super) fn check_epoch(entry: Option<&Entry>, epoch: Epoch) -> Result<(), Refusal> {
    match entry {
        Some(entry) if epoch < entry.epoch => Err(Refusal::InvalidProducerEpoch),
        Some(_) | None => Ok(()),
    }
}

/// Whether the batch's first sequence is the next one (T-354, T-355). `opens` says by which rules the batch opens a
/// transaction here, if it does. Duplicates and lower epochs are judged before.
pub(super) fn check_sequence(entry: Option<&Entry>, header: &Header, opens: Option<Protocol>) -> Result<(), Refusal> {
    let wanted = match entry {
        Some(entry) if entry.epoch >= 0 => {
            let newest = entry.recent.newest().filter(|_| entry.epoch == header.producer_epoch);
            newest.map_or(0, |batch| add_sequence(batch.last_sequence, 1))
        }
        // The state may have been dropped as idle, so any sequence will do; but an epoch made for this transaction
        // begins at 0.
        Some(_) | None => match opens {
            Some(Protocol::EpochPerTransaction) => 0,
            Some(Protocol::Classic) | None => return Ok(()),
        },
    };
    if header.base_sequence == wanted { Ok(()) } else { Err(Refusal::OutOfOrderSequence) }
}

/// Whether a marker of epoch `marker` may be written where `entry` stands (T-406).
pub(super) fn check_marker_epoch(entry: Option<&Entry>, marker: Epoch, protocol: Protocol) -> Result<(), Refusal> {
    let known = entry.map_or(-1, |entry| entry.epoch);
    let idle = entry.is_none_or(|entry| entry.open.is_none());
    let fits = match protocol {
        Protocol::Classic => marker >= known,
        // The equal epoch is a repeat of the marker unless a later transaction runs under it; at the last epoch there
        // is no later one.
        Protocol::EpochPerTransaction => marker > known || marker == known && (idle || marker == Epoch::MAX),
    };
    if fits { Ok(()) } else { Err(Refusal::InvalidProducerEpoch) }
}

//! What a reader may have of a partition, and how the partitions of one Fetch share its bytes.

pub mod session;
pub mod sessions;

use crate::engine::{Offset, Refusal};

/// Most bytes of one Fetch answer, whatever the client asks for: Kafka's `fetch.max.bytes` (F-721).
pub const FETCH_MOST_BYTES: usize = 57_671_680;

/// Which records a reader wants (T-510).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Everything up to the watermark.
    ReadUncommitted,
    /// What is decided, up to the last stable offset.
    ReadCommitted,
}

impl Isolation {
    /// The level a request names.
    ///
    /// # Errors
    /// `InvalidRequest` for any number but 0 and 1.
    pub fn of(level: i8) -> Result<Self, Refusal> {
        match level {
            0 => Ok(Self::ReadUncommitted),
            1 => Ok(Self::ReadCommitted),
            _ => Err(Refusal::InvalidRequest),
        }
    }
}

/// The offsets of a partition that readers go by, taken once (T-503).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// First offset.
    pub log_start: Offset,
    /// End of what is on disk.
    pub watermark: Offset,
    /// End of what is decided.
    pub last_stable: Offset,
}

impl Bounds {
    /// Where a reader's records end. Never below the log start (T-541).
    #[must_use]
    pub fn limit(&self, isolation: Isolation) -> Offset {
        match isolation {
            Isolation::ReadUncommitted => self.watermark,
            Isolation::ReadCommitted => self.last_stable.min(self.watermark).max(self.log_start),
        }
    }
}

/// Holds the leader epoch that a client believes in, -1 for none, against ours (F-729).
///
/// # Errors
/// `FencedLeaderEpoch` for an older one, `UnknownLeaderEpoch` for a newer one.
pub fn check_leader_epoch(believed: i32, current: i32) -> Result<(), Refusal> {
    match believed {
        -1 => Ok(()),
        older if older < current => Err(Refusal::FencedLeaderEpoch),
        newer if newer > current => Err(Refusal::UnknownLeaderEpoch),
        _ => Ok(()),
    }
}

/// Where a client reads on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The offset it wants next.
    pub offset: Offset,
    /// The leader epoch it believes the partition to be in, -1 for none.
    pub leader_epoch: i32,
    /// The leader epoch of the last record it has, -1 for none.
    pub last_epoch: i32,
}

/// What a position is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Records may follow.
    Valid,
    /// The client's log parted from ours: it must go back to this epoch's end (F-731).
    Diverged {
        /// The largest epoch of ours that is not above the client's.
        epoch: i32,
        /// Where that epoch ends.
        end: Offset,
    },
}

/// Judges a position (F-729 to F-732). `epoch_end` says where an epoch ends: the largest epoch not above it, and the
/// end of that one, as [`LeaderEpochs::end_of`](crate::engine::log::LeaderEpochs::end_of) does.
///
/// # Errors
/// `FencedLeaderEpoch`, `UnknownLeaderEpoch`, `OffsetOutOfRange`.
pub fn judge(
    position: &Position,
    bounds: &Bounds,
    current_epoch: i32,
    epoch_end: impl FnOnce(i32) -> (i32, Offset),
) -> Result<Standing, Refusal> {
    check_leader_epoch(position.leader_epoch, current_epoch)?;
    if position.last_epoch > current_epoch || position.offset < bounds.log_start {
        return Err(Refusal::OffsetOutOfRange);
    }
    if position.last_epoch >= 0 {
        let (epoch, end) = epoch_end(position.last_epoch);
        if epoch < position.last_epoch || end < position.offset {
            return Ok(Standing::Diverged { epoch, end });
        }
    }
    if position.offset > bounds.watermark {
        return Err(Refusal::OffsetOutOfRange);
    }
    Ok(Standing::Valid)
}

/// The bytes that are left of one Fetch (F-721 to F-725).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    left: usize,
    first: First,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    /// The first batch of the next partition comes whatever its size.
    Exempt,
    /// Some partition had its batch.
    Served,
}

/// What one partition may have of the room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// Not more bytes than this.
    pub max_bytes: usize,
    /// Whether its first batch comes even if it alone is larger (F-723).
    pub at_least_one: bool,
}

impl Room {
    /// Room for this many bytes.
    #[must_use]
    pub fn of(bytes: usize) -> Self {
        Self { left: bytes, first: First::Exempt }
    }

    /// What a partition may have that asks for `partition_max` bytes; `None` when nothing is left.
    #[must_use]
    pub fn offer(&self, partition_max: usize) -> Option<Offer> {
        let at_least_one = self.first == First::Exempt;
        let max_bytes = partition_max.min(self.left);
        (at_least_one || max_bytes > 0).then_some(Offer { max_bytes, at_least_one })
    }

    /// A partition had this many bytes.
    pub fn took(&mut self, bytes: usize) {
        if bytes > 0 {
            self.first = First::Served;
            self.left = self.left.saturating_sub(bytes);
        }
    }
}

#[cfg(test)]
mod tests;

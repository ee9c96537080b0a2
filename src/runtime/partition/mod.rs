//! A partition's owner: takes letters in order, admits batches and markers, writes once, answers when it is on disk.
//!
//! A plain value that its thread drives; nothing in it waits. What a turn wrote is *published* (watermark, last stable
//! offset) only when synced, and only after that do tickets let answers go: a reader who asks after an answer finds
//! what it promised.

mod debt;
pub mod load;
pub mod place;
pub mod published;
mod room;
mod tally;
mod trim;
pub mod turn;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::config::{Durability, MarkerSync};
use crate::engine::partition::{Grant, Partition};
use crate::engine::{Now, Offset, PartId};
use crate::runtime::events::Events;
use crate::runtime::post::{Keeping, Post};
use crate::store::StoreError;
use crate::store::log::{Log, SyncJob};
use crate::store::space::Space;
use crate::store::tickets::{Lane, Ticket};
use debt::Debt;
pub use debt::Debts;
use published::{OldestOpen, Published, Shared};
use room::Memory;
use tally::Tally;

/// Bytes after a recovery point from which a partition makes another one, sooner where all together owe sixteen times that.
pub const CHECKPOINT_BYTES: u64 = 64 << 20;

/// What every partition's owner is told once.
#[derive(Clone)]
pub struct Settings {
    /// The leader epoch of everything appended from now on.
    pub incarnation: i32,
    /// Whether answers wait for the disk.
    pub durability: Durability,
    /// Whether markers count when written, their decision being on disk.
    pub marker_sync: MarkerSync,
    /// Producers idle for this long, in milliseconds, are forgotten (T-611).
    pub producer_expiration_ms: i64,
    /// Bytes after a recovery point from which another one is made: [`CHECKPOINT_BYTES`].
    pub checkpoint_bytes: u64,
    /// What all partitions have written after their recovery points.
    pub debts: Arc<Debts>,
    /// How far `meta.db` is on disk: a transaction's first batch waits for the row that let it write.
    pub rows: Arc<Lane<Post>>,
    /// Where events go.
    pub events: Events,
    /// The disk's room, and what of it is set aside for markers.
    pub space: Arc<Space>,
}

/// One partition's owner.
pub struct PartitionOwner {
    part: PartId,
    engine: Partition,
    log: Log,
    shared: Arc<Shared>,
    settings: Settings,
    source: load::Source,
    /// Permissions, to be given again to a partition that was reloaded after a failed write.
    grants: Vec<Grant>,
    /// Permissions that a decision under way has closed, by producer id and number.
    sealed: BTreeSet<(i64, u64)>,
    /// The log start that is on its way to be stored.
    moving: Option<Offset>,
    memory: Memory,
    /// A marker that is owed longer than those to come could not be written yet.
    unpaid: bool,
    debt: Debt,
    tally: Tally,
    last_turn: Now,
    next_expiry_mono_ms: i64,
}

/// What a turn sends, and what it wants done.
#[derive(Default)]
pub struct Turn {
    /// Leaves now.
    pub at_once: Vec<Post>,
    /// Bytes to bring to disk, and what may be published then.
    pub sync: Option<Syncing>,
    /// The partition's files are not what they should be: this was its owner's last turn.
    pub damaged: Option<String>,
}

/// One sync: files to flush, and what is true for readers once they are.
pub struct Syncing {
    /// The files, oldest first.
    pub jobs: Vec<SyncJob>,
    /// The view of the log's end at the moment the job was made.
    pub then: Published,
}

impl Syncing {
    /// Flushes. Blocks.
    ///
    /// # Errors
    /// `Broken`: never to be tried again.
    pub fn run(&self) -> Result<(), StoreError> {
        self.jobs.iter().try_for_each(SyncJob::run)
    }

    /// The offset below which all is on disk then.
    #[must_use]
    pub fn end(&self) -> Offset {
        self.jobs.last().map_or(0, SyncJob::end)
    }

    /// Both in one.
    fn and(mut self, later: Self) -> Self {
        self.jobs.extend(later.jobs);
        Self { jobs: self.jobs, then: later.then }
    }
}

/// A post, and what must be true before it leaves.
struct Held {
    post: Post,
    until: Until,
}

/// How far the turn's bytes, and what they rest on, must be.
enum Until {
    /// In the file.
    Written,
    /// On disk, and the row of `meta.db` that let the transaction write as well.
    Synced {
        /// The commit that holds the row.
        row: Option<u64>,
    },
}

impl Held {
    fn until_synced(post: Post) -> Self {
        Self { post, until: Until::Synced { row: None } }
    }
}

impl Settings {
    fn is_strict(&self) -> bool {
        self.durability == Durability::Strict
    }
}

impl PartitionOwner {
    /// The view of the log as it stands in this owner's memory: to be published when that is on disk.
    fn view(&self) -> Published {
        let log_end = self.engine.log_end();
        let last_stable = self.engine.first_unstable().unwrap_or(log_end).min(log_end);
        let oldest = self.engine.open_transactions().next();
        let oldest = oldest.map(|open| OldestOpen { producer: open.producer, started_wall_ms: open.started_wall_ms });
        Published::open(self.engine.log_start(), log_end, last_stable, oldest)
    }

    /// Lets a post go when the log is on disk up to its present end, and the row with it.
    fn hold(&self, held: Held, turn: &mut Turn) {
        // Memory that is ahead of the file says nothing about where it ends.
        let end = if self.waits_for_room() { self.log.next_offset() } else { self.engine.log_end() };
        let end = u64::try_from(end).unwrap_or(0);
        let row = match held.until {
            Until::Written => {
                turn.at_once.push(held.post);
                return;
            }
            Until::Synced { row } => row,
        };
        let ticket = Ticket::new(held.post, if row.is_some() { 2 } else { 1 });
        let by_row = row.and_then(|row| self.settings.rows.wait(row, &ticket));
        let by_log = self.shared.lane.wait(end, &ticket);
        turn.at_once.extend(by_row.into_iter().chain(by_log));
    }

    /// Brings to disk what was written and is in no sync's hands: where answers do not wait for the disk, all of it.
    ///
    /// # Errors
    /// `Broken`.
    pub fn sync_written(&mut self) -> Result<(), StoreError> {
        match self.log.take_unsynced() {
            Some(job) => {
                job.run()?;
                self.log.note_synced(job.end());
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Says whether a marker could not be written when it was asked for, and still is owed.
    pub fn set_unpaid(&mut self, unpaid: bool) {
        self.unpaid = unpaid;
    }

    /// Keeps the log otherwise, from the next append on.
    fn keep(&mut self, keeping: Keeping) {
        self.source.keep(keeping);
        self.log.set_settings(keeping.log);
    }

    /// Which partition this is.
    #[must_use]
    pub fn part(&self) -> PartId {
        self.part
    }

    /// The log's end in this owner's memory, on disk or not.
    #[must_use]
    pub fn log_end(&self) -> Offset {
        self.engine.log_end()
    }

    /// Producers idle too long are forgotten, once in a while.
    fn expire_producers(&mut self, now: Now) {
        if now.mono_ms >= self.next_expiry_mono_ms {
            self.next_expiry_mono_ms = now.mono_ms.saturating_add(600_000);
            self.engine.expire(now, self.settings.producer_expiration_ms);
            self.shared.set_producers(self.engine.producer_count());
        }
    }
}

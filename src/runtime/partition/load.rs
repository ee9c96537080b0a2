//! A partition from its files: at its first use, and again after a write that failed.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Once};

use super::debt::Debt;
use super::published::{Availability, Published, Shared};
use super::room::Memory;
use super::tally::Tally;
use super::{PartitionOwner, Settings};
use crate::engine::batch::Header;
use crate::engine::batch::check::Times;
use crate::engine::catalog::Topic;
use crate::engine::ledger::rows::PartRow;
use crate::engine::log::epochs::topic_id_text;
use crate::engine::log::scan::Verdict;
use crate::engine::log::{LogSettings, Retention};
use crate::engine::partition::{Aborted, Partition};
use crate::engine::{Now, Offset, PartId, Producer};
use crate::runtime::post::Keeping;
use crate::store::StoreError;
use crate::store::disk::Disk;
use crate::store::log::{
    AbortedLists, Belongs, Log, LogReader, OpenHow, Opened, Replay, Torn, belongs_to, delete_dir_of, name_again,
};

/// Where a partition's files are, and how its topic wants it kept.
#[derive(Clone)]
pub struct Source {
    /// The disk.
    pub disk: Arc<dyn Disk>,
    /// The partition's directory.
    pub dir: PathBuf,
    /// Its topic.
    pub topic: Arc<Topic>,
    /// Its row as the start found it, or as it was made.
    pub row: PartRow,
    /// Segment and index settings in effect.
    pub log: LogSettings,
    /// Whether the process before stopped in order: sizes can be trusted then.
    pub clean: bool,
    /// Whose timestamps the topic keeps.
    pub times: Times,
    /// What goes by age or size, if anything does.
    pub retention: Option<Retention>,
    /// A log end that is known to have been on disk: what is missing below it is damage, not a torn tail.
    pub witness: i64,
}

/// Feeds a partition's engine from its log.
struct Rebuild {
    engine: Partition,
    fresh: Partition,
    now: Now,
}

impl Replay for Rebuild {
    fn snapshot(&mut self, bytes: &[u8]) -> bool {
        let mut engine = self.fresh.clone();
        let valid = engine.restore(bytes, self.now).is_ok();
        if valid {
            self.engine = engine;
        }
        valid
    }

    fn batch(&mut self, header: &Header, control: Option<&[u8]>) -> Option<Aborted> {
        self.engine.replay(header, control, self.now)
    }
}

impl PartitionOwner {
    /// Opens the partition's files, or makes them. After an unclean stop what the scan accepted is synced before this
    /// returns (storage rule S); nobody sees it before [`show`](Self::show).
    ///
    /// # Errors
    /// `Damaged`: the partition is not served. `Broken`, `Full`.
    pub fn load(
        part: PartId,
        source: Source,
        settings: Settings,
        shared: Arc<Shared>,
        now: Now,
    ) -> Result<Self, StoreError> {
        let (log, engine) = open(&source, &settings, now)?;
        let mut debt = Debt::none(&settings.debts);
        debt.set(log.debt());
        shared.set_reader(log.reader());
        shared.set_producers(engine.producer_count());
        let tally = Tally::of(settings.events.metrics(), &source.topic.name);
        let mut owner = Self {
            part,
            engine,
            log,
            shared,
            settings,
            source,
            grants: Vec::new(),
            sealed: BTreeSet::new(),
            moving: None,
            memory: Memory::AsFiles,
            unpaid: false,
            debt,
            tally,
            last_turn: now,
            next_expiry_mono_ms: now.mono_ms.saturating_add(600_000),
        };
        // From here on the files are this process's own: a reload trusts its row no further than a crash would.
        owner.source.clean = false;
        let end = u64::try_from(owner.engine.log_end()).unwrap_or(0);
        let waiting = owner.shared.lane.reached(end);
        debug_assert!(waiting.is_empty(), "nobody can wait for a partition that was not loaded");
        Ok(owner)
    }

    /// Reads the partition anew after a write that failed: memory had run ahead of the file. Permissions stay. What is
    /// on disk by this process's own knowledge must be found: its loss is damage, not a torn tail.
    pub(super) fn reload(&mut self) -> Result<(), StoreError> {
        self.memory = Memory::Ahead;
        let synced = Offset::try_from(self.shared.lane.is_at()).unwrap_or(0);
        self.source.witness = self.source.witness.max(synced);
        let (log, engine) = open(&self.source, &self.settings, self.last_turn)?;
        self.log = log;
        self.engine = engine;
        // A move that waited for the turn's bytes is gone with them.
        self.moving = None;
        self.shared.set_reader(self.log.reader());
        for grant in self.grants.clone() {
            self.engine.grant(grant);
        }
        for (producer_id, number) in self.sealed.clone() {
            self.engine.seal(producer_id, number);
        }
        self.shared.set_producers(self.engine.producer_count());
        self.memory = Memory::AsFiles;
        Ok(())
    }

    /// Transactions that the log holds open, for the comparison with the ledger at a start.
    #[must_use]
    pub fn open_transactions(&self) -> Vec<Producer> {
        self.engine.open_transactions().map(|open| open.producer).collect()
    }
}

/// Opens a damaged partition as far as it can be read, and gives what readers may know of it: the damage is their limit,
/// and so is a transaction that is open there. Of one that was served nothing is shown that was not on disk before, by
/// what this process knows: `synced`.
pub(super) fn salvage(
    source: &Source,
    settings: &Settings,
    synced: Option<Offset>,
    now: Now,
) -> (Published, Option<LogReader>) {
    let nothing = (Published::not(Availability::Damaged), None);
    let ours = match (belongs_to(&*source.disk, &source.dir), source.row.point) {
        (Ok(Belongs::To(topic)), _) => topic == source.topic.id,
        (Ok(Belongs::Nameless), point) => point.is_some(),
        (Ok(Belongs::Absent) | Err(_), _) => false,
    };
    if !ours {
        return nothing;
    }
    let start = source.row.log_start;
    let mut rebuild = Rebuild::of(start, now);
    let disk = Arc::clone(&source.disk);
    match Log::open_damaged(disk, &source.dir, source.log, source.how(settings.incarnation), &mut rebuild) {
        // Rows older than the log say nothing about what is decided in it.
        Ok(salvaged) if salvaged.leader_epoch.is_some_and(|epoch| epoch > settings.incarnation) => nothing,
        Ok(salvaged) if salvaged.end > start => {
            let mut engine = rebuild.engine;
            engine.set_log_end(salvaged.end);
            let end = synced.map_or(salvaged.end, |synced| synced.clamp(start, salvaged.end));
            let last_stable = engine.first_unstable().unwrap_or(end).min(end);
            let open = Published::open(start, end, last_stable, None);
            (Published { availability: Availability::Damaged, ..open }, Some(salvaged.reader))
        }
        Ok(_) => nothing,
        Err(error) => {
            tracing::error!(dir = %source.dir.display(), %error, "nothing of the damaged partition can be read");
            nothing
        }
    }
}

impl Rebuild {
    fn of(log_start: Offset, now: Now) -> Self {
        let fresh = Partition::new(log_start, log_start);
        Self { engine: fresh.clone(), fresh, now }
    }
}

impl Source {
    /// Notes how the topic wants its log kept.
    pub(super) fn keep(&mut self, keeping: Keeping) {
        let Keeping { log, times, retention } = keeping;
        self.log = log;
        self.times = times;
        self.retention = retention;
    }

    fn how(&self, incarnation: i32) -> OpenHow {
        let PartRow { point, log_start, .. } = self.row;
        OpenHow { point, log_start, clean: self.clean, witness: self.witness, incarnation }
    }
}

impl PartitionOwner {
    /// What is left of it when its topic is deleted.
    #[must_use]
    pub fn into_source(self) -> Source {
        self.source
    }
}

fn open(source: &Source, settings: &Settings, now: Now) -> Result<(Log, Partition), StoreError> {
    let incarnation = settings.incarnation;
    let start = source.row.log_start;
    if !is_made(source)? {
        let log = Log::create(Arc::clone(&source.disk), &source.dir, source.topic.id, incarnation, source.log)?;
        return Ok((log, Partition::new(start, start)));
    }
    let mut rebuild = Rebuild::of(start, now);
    let (log, opened) =
        Log::open(Arc::clone(&source.disk), &source.dir, source.log, source.how(incarnation), &mut rebuild)?;
    tell(source, &opened);
    settings.events.metrics().log_verified(opened.scanned_bytes);
    if let Some(epoch) = log.leader_epoch().filter(|epoch| *epoch > incarnation) {
        let dir = source.dir.display();
        return Err(StoreError::Damaged(format!(
            "{dir}: written by start {epoch}, meta.db knows only {incarnation}: meta.db is older than the logs; restore \
             the newer one"
        )));
    }
    let mut engine = rebuild.engine;
    engine.set_log_end(log.next_offset());
    Ok((log, engine))
}

/// Says what a recovery did: an operator must be able to see what was cut.
fn tell(source: &Source, opened: &Opened) {
    static CACHE_KEPT: Once = Once::new();
    let dir = source.dir.display();
    if let Some(Torn { path, position, bytes, verdict, kept }) = &opened.torn {
        let (file, kept) = (path.display(), kept.as_ref().map(|kept| kept.display().to_string()));
        let end = opened.next_offset;
        if *verdict == Verdict::Hole {
            tracing::error!(%file, position, bytes, end, kept, "a hole in what was not acknowledged: cut from there on");
        } else {
            tracing::warn!(%file, position, bytes, end, kept, "torn tail cut");
        }
    }
    if opened.rejected_snapshots > 0 {
        tracing::warn!(%dir, count = opened.rejected_snapshots, "producer snapshots that are not valid were passed over");
    }
    if opened.aborted == AbortedLists::MadeAnew {
        tracing::warn!(%dir, "lists of aborted transactions had lost entries, and were made anew from the whole log");
    }
    if opened.cache_kept {
        CACHE_KEPT.call_once(|| {
            tracing::warn!(%dir, "the file system neither drops its cache nor reads past it: recovery had to believe it");
        });
    }
}

/// Whether the partition's log is there; what a deleted topic of the same name left in its place is removed. A log that
/// has a recovery point was made and written by this partition; one that has none may be anybody's.
fn is_made(source: &Source) -> Result<bool, StoreError> {
    let (dir, ours) = (&source.dir, source.topic.id);
    let damaged = |why: String| Err(StoreError::Damaged(format!("{}: {why}", dir.display())));
    let known_end = source.witness.max(source.row.log_start);
    match (belongs_to(&*source.disk, dir)?, source.row.point) {
        (Belongs::To(topic), _) if topic == ours => Ok(true),
        (Belongs::Absent, Some(_)) => Ok(true),
        (Belongs::Nameless, Some(_)) => name_again(Arc::clone(&source.disk), dir, ours).map(|()| true),
        (Belongs::To(topic), Some(_)) => damaged(format!("holds a log of the topic with id {}", topic_id_text(topic))),
        (Belongs::Absent | Belongs::Nameless | Belongs::To(_), None) if known_end > 0 => {
            damaged(format!("the log had reached offset {known_end}, and is not there"))
        }
        // Nothing is written to a log whose creation was interrupted: making it refuses to go over batches.
        (Belongs::Absent | Belongs::Nameless, None) => Ok(false),
        (Belongs::To(topic), None) => delete_dir_of(&*source.disk, dir, topic).map(|_| false),
    }
}

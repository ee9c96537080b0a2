//! Starts a world: the first time, and after every end.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::store::{Buggy, FakeDb};
use super::{Db, Part, World};
use crate::clock::Clock;
use crate::config::{Config, Durability, MarkerSync};
use crate::engine::batch::check::Times;
use crate::engine::catalog::{BrokerLevels, Catalog, Defaults, Replication, Topic};
use crate::engine::ledger::Ledger;
use crate::engine::ledger::recover::Loaded;
use crate::engine::ledger::rows::PartRow;
use crate::engine::log::{LogSettings, Retention};
use crate::engine::{Now, PartId, TopicId, group};
use crate::metrics::Metrics;
use crate::runtime::events::Events;
use crate::runtime::ledger::{LedgerOwner, Settings as LedgerSettings};
use crate::runtime::partition::load::Source;
use crate::runtime::partition::{CHECKPOINT_BYTES, Settings};
use crate::runtime::partitions::Partitions;
use crate::runtime::post::{Keeping, LedgerLetter, PartLetter, Post};
use crate::runtime::start::Start;
use crate::store::StoreError;
use crate::store::disk::Disk;
use crate::store::log::remove_leftovers;
use crate::store::mem_disk::MemDisk;
use crate::store::meta::{Boot, LedgerStore, Meta, WalFile};
#[cfg(test)]
use crate::store::os_disk::OsDisk;
use crate::store::space::{Limits, Space};
use crate::store::tickets::Lane;

/// How a world is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct How {
    pub(crate) durability: Durability,
    pub(crate) marker_sync: MarkerSync,
    pub(crate) id_expiration_ms: i64,
    pub(crate) segment_bytes: u32,
    pub(crate) checkpoint_bytes: u64,
    pub(crate) limits: Limits,
}

impl Default for How {
    fn default() -> Self {
        Self {
            durability: Durability::Strict,
            marker_sync: MarkerSync::Answer,
            id_expiration_ms: 604_800_000,
            segment_bytes: 1 << 20,
            checkpoint_bytes: CHECKPOINT_BYTES,
            limits: Limits::OFF,
        }
    }
}

impl World {
    /// A world whose ledger writes into memory.
    pub(crate) fn new(how: How) -> Self {
        Self::on(how, Db::Fake(FakeDb::default()))
    }

    /// A world whose ledger writes into SQLite, in a directory of its own.
    #[cfg(test)]
    pub(crate) fn on_sqlite(how: How) -> Self {
        let root = Arc::new(tempfile::tempdir().unwrap());
        let (_, _, wal) = open_meta(OsDisk::new(root.path()).unwrap(), root.path()).unwrap();
        Self::on(how, Db::Real { root, wal })
    }

    pub(crate) fn on(how: How, db: Db) -> Self {
        Self::on_disk(how, db, MemDisk::default())
    }

    /// A world that starts from what is on a disk.
    pub(crate) fn on_disk(how: How, db: Db, disk: MemDisk) -> Self {
        let rows = Arc::new(Lane::new(0));
        let mut world = Self {
            now: Now { mono_ms: 0, wall_ms: 1_700_000_000_000 },
            how,
            incarnation: -1,
            part_settings: part_settings(&how, 0, Arc::clone(&rows), &disk),
            disk,
            db,
            owner: None,
            rows,
            written: 0,
            parts: BTreeMap::new(),
            catalog: Arc::new(Catalog::of(Vec::new())),
            inbox: VecDeque::new(),
            asked: 0,
            answers: BTreeMap::new(),
            trace: Vec::new(),
            tracing: true,
            broken: None,
            ledger_turns: 0,
            overdue_turns: 0,
        };
        world.start(true);
        world
    }

    /// Starts from what the store and the disk hold, as the server does. A start that fails leaves the world broken.
    pub(crate) fn start(&mut self, clean: bool) {
        self.incarnation += 1;
        // The monotonic clock's zero is the process's start.
        self.now.mono_ms = 0;
        self.broken = None;
        self.owner = None;
        self.inbox.clear();
        self.parts.clear();
        self.rows = Arc::new(Lane::new(0));
        self.written = 0;
        if let Err(error) = self.try_start(clean) {
            self.breaks(&error.to_string());
        }
    }

    fn try_start(&mut self, clean: bool) -> Result<(), StoreError> {
        let (mut store, loaded, clean) = self.open_store(clean)?;
        let settings = ledger_settings(&self.how, self.incarnation);
        let mut ledger = Ledger::load(loaded, &settings.groups, self.now);
        self.part_settings = part_settings(&self.how, self.incarnation, Arc::clone(&self.rows), &self.disk);
        self.catalog = Arc::clone(ledger.stored_catalog());
        let dirs = |topic: &Arc<Topic>| {
            let (name, id, count) = (topic.name.clone(), topic.id, topic.parts.len());
            (0..count).map(move |index| (format!("{name}-{index}"), id))
        };
        let known: BTreeMap<String, TopicId> = self.catalog.iter().flat_map(dirs).collect();
        remove_leftovers(&self.disk, self.incarnation, &known)?;
        let partitions = Partitions::new(self.part_settings.clone(), Clock::manual(self.now.wall_ms));
        let (disk, how, catalog) = (self.disk.clone(), self.how, Arc::clone(&self.catalog));
        let of = |_: PartId, row: &PartRow| source(&disk, &how, &catalog, row).map(|source| Source { clean, ..source });
        Start { ledger: &mut ledger, settings: &self.part_settings, clean, source: &of, now: self.now }
            .run(&partitions)?;
        if !ledger.rows().is_empty() {
            store.commit(ledger.rows())?;
        }
        self.sync_rows()?;
        ledger.commit();
        self.written = store.written();
        assert!(self.rows.reached(self.written).is_empty(), "nobody waits before a start is over");
        let part = |(part, (shared, place))| (part, Part { place, shared, mail: VecDeque::new(), sync: None });
        self.parts = partitions.into_places().into_iter().map(part).collect();
        let events = self.part_settings.events.clone();
        self.owner = Some(LedgerOwner::new(ledger, store, settings, events));
        Ok(())
    }

    /// The ledger's store, its rows, and whether the end before was clean.
    fn open_store(&mut self, clean: bool) -> Result<(Box<dyn LedgerStore>, Loaded, bool), StoreError> {
        Ok(match &mut self.db {
            Db::Fake(db) => (Box::new(db.clone()), db.load(), clean),
            #[cfg(test)]
            Db::Real { root, wal } => {
                let (meta, _, fresh) = open_meta(OsDisk::new(root.path()).unwrap(), root.path())?;
                *wal = fresh;
                let loaded = meta.load()?;
                (Box::new(meta), loaded, clean)
            }
            Db::Simulated { mount, wal } => {
                let root = mount(&self.disk);
                let (meta, boot, fresh) = open_meta(self.disk.clone(), &root)?;
                *wal = Some(fresh);
                self.incarnation = boot.incarnation;
                let loaded = meta.load()?;
                (Buggy::or_sound(Box::new(meta)), loaded, boot.clean)
            }
        })
    }

    /// Debts in the store, as the next start would find them. For a world that was stopped.
    pub(crate) fn stored_debts(&mut self) -> Result<usize, StoreError> {
        let (_, loaded, _) = self.open_store(true)?;
        Ok(loaded.owed.len())
    }

    /// Everything the ledger has committed reaches the disk.
    pub(crate) fn sync_rows(&self) -> Result<(), StoreError> {
        match &self.db {
            Db::Fake(db) => {
                db.flush();
                Ok(())
            }
            #[cfg(test)]
            Db::Real { wal, .. } => wal.sync(),
            Db::Simulated { wal, .. } => wal.as_ref().map_or(Ok(()), WalFile::sync),
        }
    }

    /// Stops as the server does: whoever waits is sent away, logs are closed, the store is marked clean.
    pub(crate) fn stop(&mut self) {
        self.deliver(Post::Ledger(LedgerLetter::Settle));
        self.run_to_rest();
        let parts: Vec<PartId> = self.parts.keys().copied().collect();
        for part in parts {
            if self.parts.get(&part).is_some_and(|entry| !entry.place.is_unloaded()) {
                self.deliver(Post::Part(part, PartLetter::Close));
            }
        }
        self.run_to_rest();
        self.deliver(Post::Ledger(LedgerLetter::Stop));
        self.run_to_rest();
        if self.broken.is_some() {
            return;
        }
        let closed = self.owner.take().map(|owner| owner.into_store().close());
        if let Some(Err(error)) = closed {
            self.breaks(&error.to_string());
        }
    }
}

fn open_meta(disk: impl Disk + 'static, root: &Path) -> Result<(Meta, Boot, WalFile), StoreError> {
    let disk: Arc<dyn Disk> = Arc::new(disk);
    Meta::open(&disk, root, "cluster")
}

fn log_settings(how: &How) -> LogSettings {
    LogSettings { segment_bytes: how.segment_bytes, index_interval_bytes: 4096, segment_ms: i64::MAX }
}

/// As a topic keeps its logs that is set to this retention.
pub(crate) fn keeping(how: &How, retention: Option<Retention>) -> Keeping {
    Keeping { log: log_settings(how), times: Times::CreateTime, retention }
}

pub(crate) fn source(disk: &MemDisk, how: &How, catalog: &Catalog, row: &PartRow) -> Option<Source> {
    let topic = catalog.topic_by_id(row.topic)?;
    Some(Source {
        disk: Arc::new(disk.clone()),
        dir: PathBuf::from(format!("{}-{}", topic.name, row.index)),
        topic: Arc::clone(topic),
        row: *row,
        log: log_settings(how),
        clean: true,
        times: Times::CreateTime,
        retention: None,
        witness: 0,
    })
}

pub(crate) fn part_settings(how: &How, incarnation: i32, rows: Arc<Lane<Post>>, disk: &MemDisk) -> Settings {
    let space = Arc::new(Space::new(Arc::new(disk.clone()), how.limits));
    Settings {
        incarnation,
        durability: how.durability,
        marker_sync: how.marker_sync,
        producer_expiration_ms: 86_400_000,
        checkpoint_bytes: how.checkpoint_bytes,
        debts: Arc::default(),
        rows,
        events: Events::new(METRICS.with(Arc::clone)),
        space,
    }
}

thread_local! {
    /// Nobody reads them; to make them takes longer than to start a world.
    static METRICS: Arc<Metrics> = Arc::new(Metrics::new(&Config::builtin(), &[]).expect("no topic is named"));
}

pub(crate) fn ledger_settings(how: &How, incarnation: i32) -> LedgerSettings {
    LedgerSettings {
        incarnation,
        max_timeout_ms: 900_000,
        id_expiration_ms: how.id_expiration_ms,
        offsets_retention_ms: 604_800_000,
        redo: how.marker_sync == MarkerSync::Redo,
        groups: group::Settings {
            min_session_timeout_ms: 6_000,
            max_session_timeout_ms: 1_800_000,
            initial_rebalance_delay_ms: 0,
            max_size: 1_000,
        },
        topics: Defaults {
            partitions: 1,
            node_id: 1,
            replication: Replication::Refuse,
            levels: BrokerLevels::default(),
        },
    }
}

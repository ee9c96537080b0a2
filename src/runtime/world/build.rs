//! Starts a world: the first time, and after every end.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::store::FakeDb;
use super::{Db, Part, World};
use crate::clock::Clock;
use crate::config::{Config, Durability, MarkerSync};
use crate::engine::batch::check::Times;
use crate::engine::catalog::{BrokerLevels, Catalog, Defaults, Replication, Topic};
use crate::engine::ledger::Ledger;
use crate::engine::ledger::rows::PartRow;
use crate::engine::log::LogSettings;
use crate::engine::{Now, PartId, TopicId, group};
use crate::metrics::Metrics;
use crate::runtime::events::Events;
use crate::runtime::ledger::{LedgerOwner, Settings as LedgerSettings};
use crate::runtime::partition::Settings;
use crate::runtime::partition::load::Source;
use crate::runtime::partitions::Partitions;
use crate::runtime::start::Start;
use crate::store::disk::Disk;
use crate::store::log::remove_leftovers;
use crate::store::mem_disk::MemDisk;
use crate::store::meta::{LedgerStore, Meta};
use crate::store::os_disk::OsDisk;
use crate::store::tickets::Lane;

/// How a world is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct How {
    pub(super) durability: Durability,
    pub(super) marker_sync: MarkerSync,
    pub(super) id_expiration_ms: i64,
    pub(super) segment_bytes: u32,
}

impl Default for How {
    fn default() -> Self {
        Self {
            durability: Durability::Strict,
            marker_sync: MarkerSync::Answer,
            id_expiration_ms: 604_800_000,
            segment_bytes: 1 << 20,
        }
    }
}

impl World {
    /// A world whose ledger writes into memory.
    pub(super) fn new(how: How) -> Self {
        Self::on(how, Db::Fake(FakeDb::default()))
    }

    /// A world whose ledger writes into SQLite.
    pub(super) fn on_sqlite(how: How) -> Self {
        let root = Arc::new(tempfile::tempdir().unwrap());
        let (_, wal) = open_meta(root.path());
        Self::on(how, Db::Real { root, wal })
    }

    fn on(how: How, db: Db) -> Self {
        let rows = Arc::new(Lane::new(0));
        let mut world = Self {
            now: Now { mono_ms: 0, wall_ms: 1_700_000_000_000 },
            how,
            incarnation: -1,
            disk: MemDisk::default(),
            db,
            owner: None,
            part_settings: part_settings(&how, 0, Arc::clone(&rows)),
            rows,
            written: 0,
            parts: BTreeMap::new(),
            catalog: Arc::new(Catalog::of(Vec::new())),
            inbox: VecDeque::new(),
            asked: 0,
            answers: BTreeMap::new(),
            trace: Vec::new(),
            broken: None,
            ledger_turns: 0,
        };
        world.start(true);
        world
    }

    /// Starts from what the store and the disk hold, as the server does.
    pub(super) fn start(&mut self, clean: bool) {
        self.incarnation += 1;
        // The monotonic clock's zero is the process's start.
        self.now.mono_ms = 0;
        self.broken = None;
        self.inbox.clear();
        self.parts.clear();
        self.rows = Arc::new(Lane::new(0));
        let mut store: Box<dyn LedgerStore>;
        let loaded = match &mut self.db {
            Db::Fake(db) => {
                store = Box::new(db.clone());
                db.load()
            }
            Db::Real { root, wal } => {
                let (meta, fresh) = open_meta(root.path());
                *wal = fresh;
                let loaded = meta.load().unwrap();
                store = Box::new(meta);
                loaded
            }
        };
        let settings = ledger_settings(&self.how, self.incarnation);
        let mut ledger = Ledger::load(loaded, &settings.groups, self.now);
        self.part_settings = part_settings(&self.how, self.incarnation, Arc::clone(&self.rows));
        self.catalog = Arc::clone(ledger.stored_catalog());
        let dirs = |topic: &Arc<Topic>| {
            let (name, id, count) = (topic.name.clone(), topic.id, topic.parts.len());
            (0..count).map(move |index| (format!("{name}-{index}"), id))
        };
        let known: BTreeMap<String, TopicId> = self.catalog.iter().flat_map(dirs).collect();
        remove_leftovers(&self.disk, self.incarnation, &known).expect("a start");
        let partitions = Partitions::new(self.part_settings.clone(), Clock::manual(self.now.wall_ms));
        let (disk, how, catalog) = (self.disk.clone(), self.how, Arc::clone(&self.catalog));
        let of = |_: PartId, row: &PartRow| source(&disk, &how, &catalog, row).map(|source| Source { clean, ..source });
        Start { ledger: &mut ledger, settings: &self.part_settings, clean, source: &of, now: self.now }
            .run(&partitions)
            .expect("a start");
        if !ledger.rows().is_empty() {
            store.commit(ledger.rows()).expect("room for a start");
        }
        match &self.db {
            Db::Fake(db) => db.flush(),
            Db::Real { wal, .. } => wal.sync().unwrap(),
        }
        ledger.commit();
        self.written = store.written();
        assert!(self.rows.reached(self.written).is_empty(), "nobody waits before a start is over");
        let part = |(part, (shared, place))| (part, Part { place, shared, mail: VecDeque::new(), sync: None });
        self.parts = partitions.into_places().into_iter().map(part).collect();
        let events = self.part_settings.events.clone();
        self.owner = Some(LedgerOwner::new(ledger, store, settings, events));
    }
}

fn open_meta(root: &Path) -> (Meta, crate::store::meta::WalFile) {
    let disk: Arc<dyn Disk> = Arc::new(OsDisk::new(root).unwrap());
    let (meta, _, wal) = Meta::open(&disk, root, "cluster").unwrap();
    (meta, wal)
}

pub(super) fn source(disk: &MemDisk, how: &How, catalog: &Catalog, row: &PartRow) -> Option<Source> {
    let topic = catalog.topic_by_id(row.topic)?;
    Some(Source {
        disk: Arc::new(disk.clone()),
        dir: PathBuf::from(format!("{}-{}", topic.name, row.index)),
        topic: Arc::clone(topic),
        row: *row,
        log: LogSettings { segment_bytes: how.segment_bytes, index_interval_bytes: 4096, segment_ms: i64::MAX },
        clean: true,
        times: Times::CreateTime,
        witness: 0,
    })
}

pub(super) fn part_settings(how: &How, incarnation: i32, rows: Arc<Lane<crate::runtime::post::Post>>) -> Settings {
    let metrics = Metrics::new(&Config::builtin(), &[]).unwrap();
    Settings {
        incarnation,
        durability: how.durability,
        marker_sync: how.marker_sync,
        producer_expiration_ms: 86_400_000,
        rows,
        events: Events::new(Arc::new(metrics)),
    }
}

fn ledger_settings(how: &How, incarnation: i32) -> LedgerSettings {
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

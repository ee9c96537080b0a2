//! The owners, their threads, and the order in which they come and go.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::{Parts, StartError, stage, thread};
use crate::clock::Clock;
use crate::config::{Config, MarkerSync, Storage};
use crate::engine::TopicId;
use crate::engine::batch::check::Times;
use crate::engine::catalog::{BrokerLevels, Catalog, Defaults, Replication, TimestampType, Topic};
use crate::engine::group;
use crate::engine::ledger::Ledger;
use crate::engine::ledger::rows::PartRow;
use crate::engine::log::epochs::topic_id_text;
use crate::engine::log::{LogSettings, Retention};
use crate::metrics::Metrics;
use crate::runtime::broker::{Broker, Identity};
use crate::runtime::events::Events;
use crate::runtime::ledger::thread::{Flushing, Written, drive, flush};
use crate::runtime::ledger::{LedgerOwner, Settings as LedgerSettings};
use crate::runtime::partition::load::Source;
use crate::runtime::partition::{CHECKPOINT_BYTES, Settings as PartSettings};
use crate::runtime::partitions::Partitions;
use crate::runtime::post::{CatalogNews, Keeping, LedgerLetter, Post};
use crate::runtime::retention::{self, SweepLetter};
use crate::runtime::room::RoomWatch;
use crate::runtime::router::{Addresses, Router};
use crate::runtime::start::Start;
use crate::runtime::tracks::Tracks;
use crate::store::StoreError;
use crate::store::disk::Disk;
use crate::store::log::remove_leftovers;
use crate::store::meta::{Boot, CacheTrust, LedgerStore, Meta, WalFile};
use crate::store::os_disk::OsDisk;
use crate::store::space::{Limits, Space, Spared};
use crate::store::tickets::Lane;
use crate::wire::Api;

/// The one node there is.
const NODE_ID: i32 = 1;
/// Threads that carry out partitions' turns and sync what they wrote. Most of the time they wait for the disk, and a file
/// system takes that many commits at once with profit.
const PARTITION_THREADS: usize = 16;
/// How often the disk's room is looked at under a clock that is moved by hand: it does not say when.
const LOOK_BY_HAND: Duration = Duration::from_millis(50);
/// How long a clean stop waits for partitions to become quiet.
const QUIET: Duration = Duration::from_secs(20);

/// The threads behind the broker.
pub(super) struct Engines {
    router: Arc<Router>,
    flushing: Flushing,
    ledger: JoinHandle<()>,
    store: Arc<Mutex<Option<Box<dyn LedgerStore>>>>,
    flusher: JoinHandle<()>,
    owners: Vec<JoinHandle<()>>,
    sweeper: JoinHandle<()>,
    sweeps: Sender<SweepLetter>,
    /// Dropped to end the thread that looks after the disk's room.
    watching: Option<(Sender<()>, JoinHandle<()>)>,
}

/// Opens the store, recovers, and sets every owner going.
pub(super) fn engines(config: &Arc<Config>, parts: Parts) -> Result<(Engines, Broker), StartError> {
    let Parts { clock, wrap_disk, wrap_store, on_broken, traces } = parts;
    let real: Arc<dyn Disk> = Arc::new(OsDisk::new(&config.data_dir).map_err(|error| StartError(error.to_string()))?);
    let disk = wrap_disk(real);
    let fresh_cluster_id = topic_id_text(TopicId(*uuid::Uuid::new_v4().as_bytes()));
    let space = Arc::new(Space::new(Arc::clone(&disk), limits(config)));
    let open = || open_meta(&disk, config, &fresh_cluster_id, &space);
    let (meta, boot, wal) = stage(traces.as_ref(), "open data directory").in_scope(open)?;
    say_opened(&boot, config);
    let apis: Vec<(i16, &'static str)> = Api::ALL.iter().map(|api| (api.key(), api.name())).collect();
    let metrics = Arc::new(Metrics::new(config, &apis).map_err(|error| StartError(format!("metrics: {error}")))?);
    let recovery = stage(traces.as_ref(), "recover");
    let tracks = traces.map(|traces| traces as Arc<dyn Tracks>);
    let (events, defaults) = (Events::new(Arc::clone(&metrics)).tracked(tracks), defaults(config));
    let settings = ledger_settings(config, boot.incarnation, &defaults);
    let mut ledger = Ledger::load(meta.load()?, &settings.groups, clock.now());
    let mut store: Box<dyn LedgerStore> = Box::new(Spared::new(wrap_store(Box::new(meta)), Arc::clone(&space)));
    let rows = Arc::new(Lane::new(0));
    let shared = (Arc::clone(&rows), events.clone(), Arc::clone(&space));
    let part_settings = part_settings(config, boot.incarnation, shared);
    let partitions = Arc::new(Partitions::new(part_settings.clone(), clock.clone()));
    let catalog = Arc::clone(ledger.stored_catalog());
    let source = Sources { disk, defaults: defaults.clone(), clean: boot.clean };
    source.remove_leftovers(&catalog, boot.incarnation)?;
    let start = Start {
        ledger: &mut ledger,
        settings: &part_settings,
        clean: boot.clean,
        source: &|_, row| source.of(&catalog, row),
        now: clock.now(),
    };
    recovery.in_scope(|| start.run(&partitions))?;
    drop(recovery);
    if !ledger.rows().is_empty() {
        store.commit(ledger.rows())?;
        wal.sync()?;
    }
    ledger.commit();
    rows.reached(store.written());

    let (letters, inbox) = channel();
    let made = Sources { clean: true, ..source };
    let addresses = Addresses {
        ledger: letters,
        catalog: watch::Sender::new(catalog),
        metrics,
        add_partitions: Box::new(move |news, partitions| made.add(news, partitions)),
        on_broken,
    };
    let router = Arc::new(Router::new(partitions, addresses));
    let owner = LedgerOwner::new(ledger, store, settings, events);
    let flushing = Flushing { rows, written: Arc::new(Written::default()) };
    let mut engines = set_going((owner, inbox), (wal, config), flushing, (&clock, &router))?;
    engines.watch_room(space, &clock)?;
    let identity = Identity {
        cluster_id: boot.cluster_id,
        node_id: NODE_ID,
        incarnation: boot.incarnation,
        auto_create: config.topics.auto_create,
    };
    Ok((engines, Broker::new(router, clock, identity, defaults)))
}

fn part_settings(
    config: &Config,
    incarnation: i32,
    (rows, events, space): (Arc<Lane<Post>>, Events, Arc<Space>),
) -> PartSettings {
    PartSettings {
        incarnation,
        durability: config.durability,
        marker_sync: config.marker_sync,
        producer_expiration_ms: config.producers.id_expiration_ms,
        checkpoint_bytes: CHECKPOINT_BYTES,
        debts: Arc::default(),
        rows,
        events,
        space,
    }
}

/// On a full disk a start needs a little room itself, and gets what was set aside.
fn open_meta(
    disk: &Arc<dyn Disk>,
    config: &Config,
    fresh_cluster_id: &str,
    space: &Space,
) -> Result<(Meta, Boot, WalFile), StoreError> {
    match Meta::open(disk, &config.data_dir, fresh_cluster_id) {
        Err(StoreError::Full(_)) if space.spend_reserve()? => Meta::open(disk, &config.data_dir, fresh_cluster_id),
        opened => opened,
    }
}

/// Negative numbers leave it to the size of the disk.
fn limits(config: &Config) -> Limits {
    let Storage { reserve_bytes, low_free_bytes, high_free_bytes } = config.storage;
    Limits {
        reserve_bytes: u64::try_from(reserve_bytes).unwrap_or(0),
        low_bytes: u64::try_from(low_free_bytes).ok(),
        high_bytes: u64::try_from(high_free_bytes).ok(),
    }
}

/// Whether the end before was clean says how much there is to recover; `relaxed` is said so that nobody is surprised.
fn say_opened(boot: &Boot, config: &Config) {
    let (clean, incarnation, durability) = (boot.clean, boot.incarnation, config.durability);
    tracing::info!(clean, incarnation, ?durability, "data directory opened");
    if boot.cache == CacheTrust::Believed {
        tracing::warn!("the file system neither drops its cache of meta.db nor reads past it: it had to be believed");
    }
}

fn set_going(
    (owner, inbox): (LedgerOwner, Receiver<LedgerLetter>),
    (wal, config): (WalFile, &Config),
    flushing: Flushing,
    (clock, router): (&Clock, &Arc<Router>),
) -> Result<Engines, StartError> {
    let store = Arc::new(Mutex::new(None));
    let ledger = {
        let (flushing, clock, router, store) =
            (flushing.clone(), clock.clone(), Arc::clone(router), Arc::clone(&store));
        thread("ledger", move || *store.lock() = drive(owner, &inbox, &flushing, &clock, &router))?
    };
    let flusher = {
        let (flushing, clock, router) = (flushing.clone(), clock.clone(), Arc::clone(router));
        let durability = config.durability;
        thread("ledger-flush", move || flush(&wal, durability, &flushing, (&clock, &router)))?
    };
    let mut owners = Vec::new();
    for n in 0..PARTITION_THREADS {
        let router = Arc::clone(router);
        owners.push(thread(&format!("partitions-{n}"), move || router.partitions.drive_owners(&router))?);
    }
    let syncing = Arc::clone(router);
    owners.push(thread("sync", move || syncing.partitions.drive_syncs(&syncing))?);
    let (sweeps, letters) = channel();
    let sweeper = {
        let (clock, router, levels) = (clock.clone(), Arc::clone(router), defaults(config).levels);
        let interval_ms = config.topics.retention_check_interval_ms;
        thread("retention", move || retention::drive(&letters, &levels, interval_ms, (&clock, &router)))?
    };
    let (waker, woken) = (Arc::downgrade(router), sweeps.clone());
    clock.subscribe(Box::new(move || {
        if let Some(router) = waker.upgrade() {
            router.to_ledger(LedgerLetter::Wake);
        }
        // Nobody reads it any more once the broker has ended.
        drop(woken.send(SweepLetter::Wake));
    }));
    Ok(Engines {
        router: Arc::clone(router),
        flushing,
        ledger,
        store,
        flusher,
        owners,
        sweeper,
        sweeps,
        watching: None,
    })
}

impl Engines {
    /// Measures the disk before anybody is served, then now and again on a thread of its own.
    fn watch_room(&mut self, space: Arc<Space>, clock: &Clock) -> Result<(), StartError> {
        let (mut watch, router, clock) =
            (RoomWatch::new(space, self.sweeps.clone()), Arc::clone(&self.router), clock.clone());
        let mut next = watch.look(clock.now(), &router);
        let (end, ended) = channel();
        let thread = thread("disk-space", move || {
            loop {
                let wait = clock.sleep_until(next).unwrap_or(LOOK_BY_HAND);
                if !matches!(ended.recv_timeout(wait), Err(RecvTimeoutError::Timeout)) {
                    return;
                }
                next = watch.turn(clock.now(), &router);
            }
        })?;
        self.watching = Some((end, thread));
        Ok(())
    }

    /// Everything to disk, then the clean mark. Blocks.
    pub(super) fn end(self) -> Result<(), StartError> {
        // First: a letter of its own behind the last checkpoint would have the next start look into logs.
        drop(self.sweeps.send(SweepLetter::Stop));
        join(self.sweeper)?;
        if let Some((end, thread)) = self.watching {
            drop(end);
            join(thread)?;
        }
        let partitions = &self.router.partitions;
        partitions.close_logs();
        let mut waited = Duration::ZERO;
        let step = Duration::from_millis(1);
        while !partitions.is_quiet() && waited < QUIET {
            std::thread::sleep(step);
            waited = waited.saturating_add(step);
        }
        let quiet = partitions.is_quiet();
        self.router.to_ledger(LedgerLetter::Stop);
        join(self.ledger)?;
        self.flushing.written.close();
        join(self.flusher)?;
        partitions.close();
        for owner in self.owners {
            join(owner)?;
        }
        let store = self.store.lock().take();
        match (store, quiet, self.router.why_broken()) {
            (_, _, Some(why)) => Err(StartError(format!("storage failed: {why}"))),
            (Some(store), true, None) => Ok(store.close()?),
            (Some(_), false, None) => Err(StartError("partitions did not come to rest; not marked clean".to_owned())),
            (None, _, None) => Err(StartError("the ledger ended before its time".to_owned())),
        }
    }

    /// Leaves everything as it stands. Threads end when they find nothing to do.
    pub(super) fn abandon(self) {
        self.router.go_dead();
        drop(self.sweeps.send(SweepLetter::Stop));
        self.router.partitions.close();
        self.router.to_ledger(LedgerLetter::Stop);
        self.flushing.written.close();
    }
}

fn join(thread: JoinHandle<()>) -> Result<(), StartError> {
    thread.join().map_err(|_| StartError("a thread of the broker ended with a panic".to_owned()))
}

/// How a partition's source is made from its row.
struct Sources {
    disk: Arc<dyn Disk>,
    defaults: Defaults,
    clean: bool,
}

impl Sources {
    /// Files of topics that were deleted when the process ended.
    fn remove_leftovers(&self, catalog: &Catalog, incarnation: i32) -> Result<(), StoreError> {
        let leftovers = remove_leftovers(&*self.disk, incarnation, &dirs(catalog))?;
        if !leftovers.removed.is_empty() {
            tracing::info!(directories = ?leftovers.removed, "removed what was left of deleted topics");
        }
        if !leftovers.kept.is_empty() {
            tracing::warn!(directories = ?leftovers.kept, "directories of topics that meta.db does not know are kept");
        }
        Ok(())
    }

    /// Adds the partitions that are new, and tells those of topics that are set otherwise.
    fn add(&self, news: &CatalogNews, partitions: &Partitions) {
        for (part, row) in &news.created {
            if let Some(source) = self.of(&news.catalog, row) {
                partitions.add(*part, source);
            }
        }
        for topic in news.changed.iter().filter_map(|id| news.catalog.topic_by_id(*id)) {
            let keeping = self.keeping(topic);
            topic.parts.iter().for_each(|part| partitions.keep(*part, keeping));
        }
    }

    fn of(&self, catalog: &Catalog, row: &PartRow) -> Option<Source> {
        let topic: &Arc<Topic> = catalog.topic_by_id(row.topic)?;
        let Keeping { log, times, retention } = self.keeping(topic);
        Some(Source {
            disk: Arc::clone(&self.disk),
            dir: PathBuf::from(format!("{}-{}", topic.name, row.index)),
            topic: Arc::clone(topic),
            row: *row,
            log,
            clean: self.clean,
            times,
            retention,
            witness: 0,
        })
    }

    fn keeping(&self, topic: &Topic) -> Keeping {
        let settings = topic.settings.in_effect(&self.defaults.levels);
        let log = LogSettings {
            segment_bytes: u32::try_from(settings.segment_bytes).unwrap_or(1 << 30),
            index_interval_bytes: u32::try_from(settings.index_interval_bytes).unwrap_or(4096),
            segment_ms: settings.segment_ms,
        };
        let times = match settings.timestamp_type {
            TimestampType::CreateTime => Times::CreateTime,
            TimestampType::LogAppendTime => Times::LogAppendTime,
        };
        Keeping { log, times, retention: Retention::of(&settings) }
    }
}

/// Every partition's directory, and its topic.
fn dirs(catalog: &Catalog) -> BTreeMap<String, TopicId> {
    let of = |topic: &Arc<Topic>| {
        let (name, id, count) = (topic.name.clone(), topic.id, topic.parts.len());
        (0..count).map(move |index| (format!("{name}-{index}"), id))
    };
    catalog.iter().flat_map(of).collect()
}

fn ledger_settings(config: &Config, incarnation: i32, defaults: &Defaults) -> LedgerSettings {
    let ms = |ms: i64| i32::try_from(ms).unwrap_or(i32::MAX);
    LedgerSettings {
        incarnation,
        max_timeout_ms: ms(config.transactions.max_timeout_ms),
        id_expiration_ms: config.transactions.id_expiration_ms,
        offsets_retention_ms: 7 * 24 * 60 * 60 * 1000,
        redo: config.marker_sync == MarkerSync::Redo,
        groups: group::Settings {
            min_session_timeout_ms: ms(config.groups.min_session_timeout_ms),
            max_session_timeout_ms: ms(config.groups.max_session_timeout_ms),
            initial_rebalance_delay_ms: ms(config.groups.initial_rebalance_delay_ms),
            max_size: usize::try_from(config.groups.max_size).unwrap_or(usize::MAX),
        },
        topics: defaults.clone(),
    }
}

/// The broker's settings under the names that Kafka's tools know. What is as built in was set by nobody, and is not told
/// as if it were: tools copy what was set.
fn defaults(config: &Config) -> Defaults {
    let mut levels = BrokerLevels::default();
    let builtin = Config::builtin();
    let mut state = |key: &str, value_in: fn(&Config) -> String| {
        let value = value_in(config);
        if value != value_in(&builtin) {
            levels.stated.insert(key.to_owned(), value);
        }
    };
    state("log.segment.bytes", |config| config.topics.segment_bytes.to_string());
    state("message.max.bytes", |config| config.topics.max_message_bytes.to_string());
    state("log.retention.ms", |config| config.topics.retention_ms.to_string());
    state("log.retention.bytes", |config| config.topics.retention_bytes.to_string());
    state("auto.create.topics.enable", |config| config.topics.auto_create.to_string());
    state("transaction.max.timeout.ms", |config| config.transactions.max_timeout_ms.to_string());
    levels.stated.insert("log.dirs".to_owned(), config.data_dir.display().to_string());
    Defaults {
        partitions: config.topics.default_partitions,
        node_id: NODE_ID,
        replication: Replication::Refuse,
        levels,
    }
}

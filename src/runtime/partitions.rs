//! Every partition: its mailbox, its owner, what it publishes; the threads that drive owners and syncs.
//!
//! An owner has no thread of its own. A letter puts its slot in line, once; a thread of the pool takes the slot, gives
//! the owner all letters that have come, and carries out its turn. So a turn gathers by itself while the one before
//! runs, and ten thousand idle partitions cost ten thousand small values.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::clock::Clock;
use crate::engine::{PartId, Refusal};
use crate::metrics::SyncedFile;
use crate::runtime::ledger::thread::elapsed;
use crate::runtime::line::Line;
use crate::runtime::partition::load::Source;
use crate::runtime::partition::published::{Availability, Published, Shared};
use crate::runtime::partition::{PartitionOwner, Settings, Syncing, Turn};
use crate::runtime::post::{Answer, LedgerLetter, MarkResult, PartLetter, Post, SealState, Sealed};
use crate::runtime::router::Router;
use crate::store::StoreError;
use crate::store::log::delete_dir;

/// One partition.
pub struct Slot {
    part: PartId,
    /// What owner, syncer and readers share.
    pub shared: Arc<Shared>,
    mailbox: Mutex<Mailbox>,
    owner: Mutex<Owned>,
}

#[derive(Default)]
struct Mailbox {
    letters: VecDeque<PartLetter>,
    in_line: InLine,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum InLine {
    #[default]
    No,
    Yes,
}

/// The owner, if the partition has been used.
enum Owned {
    Unloaded(Box<Source>),
    Loaded(Box<PartitionOwner>),
    Damaged(String),
    Gone,
}

/// Every partition of the broker.
pub struct Partitions {
    slots: RwLock<BTreeMap<PartId, Arc<Slot>>>,
    settings: Settings,
    clock: Clock,
    turns: Line<Arc<Slot>>,
    syncs: Line<(Arc<Slot>, Syncing)>,
    damaged: AtomicUsize,
}

impl Partitions {
    /// No partition yet.
    #[must_use]
    pub fn new(settings: Settings, clock: Clock) -> Self {
        let (turns, syncs) = (Line::default(), Line::default());
        Self { slots: RwLock::default(), settings, clock, turns, syncs, damaged: AtomicUsize::new(0) }
    }

    /// Adds a partition; it is loaded at its first letter.
    pub fn add(&self, part: PartId, source: Source) {
        let slot = Slot {
            part,
            shared: Arc::new(Shared::unloaded()),
            mailbox: Mutex::default(),
            owner: Mutex::new(Owned::Unloaded(Box::new(source))),
        };
        self.slots.write().insert(part, Arc::new(slot));
    }

    /// Adds a partition whose owner a start has made already.
    pub fn add_loaded(&self, part: PartId, shared: Arc<Shared>, owner: PartitionOwner) {
        let owner = Mutex::new(Owned::Loaded(Box::new(owner)));
        self.slots.write().insert(part, Arc::new(Slot { part, shared, mailbox: Mutex::default(), owner }));
    }

    /// Adds a partition that a start found damaged.
    pub fn add_damaged(&self, part: PartId, why: String) {
        let shared = Arc::new(Shared::unloaded());
        shared.publish(Published::not(Availability::Damaged));
        self.damaged.fetch_add(1, Ordering::Relaxed);
        let owner = Mutex::new(Owned::Damaged(why));
        self.slots.write().insert(part, Arc::new(Slot { part, shared, mailbox: Mutex::default(), owner }));
    }

    /// A partition.
    #[must_use]
    pub fn slot(&self, part: PartId) -> Option<Arc<Slot>> {
        self.slots.read().get(&part).cloned()
    }

    /// Every partition.
    #[must_use]
    pub fn all(&self) -> Vec<(PartId, Arc<Slot>)> {
        self.slots.read().iter().map(|(part, slot)| (*part, Arc::clone(slot))).collect()
    }

    /// How many partitions are not served.
    #[must_use]
    pub fn damaged(&self) -> usize {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Why partitions are not served, for readiness.
    #[must_use]
    pub fn damages(&self) -> Vec<String> {
        if self.damaged() == 0 {
            return Vec::new();
        }
        let reason = |slot: Arc<Slot>| match &*slot.owner.lock() {
            Owned::Damaged(why) => Some(why.clone()),
            Owned::Unloaded(_) | Owned::Loaded(_) | Owned::Gone => None,
        };
        self.all().into_iter().filter_map(|(_, slot)| reason(slot)).collect()
    }

    /// Puts a letter into a partition's mailbox. Of a partition that is gone the letter's sender is told so.
    pub fn send(&self, part: PartId, letter: PartLetter, router: &Router) {
        match self.slot(part) {
            Some(slot) => self.put(&slot, letter),
            None => answer_gone(part, letter, router),
        }
    }

    fn put(&self, slot: &Arc<Slot>, letter: PartLetter) {
        let mut mailbox = slot.mailbox.lock();
        mailbox.letters.push_back(letter);
        let was = std::mem::replace(&mut mailbox.in_line, InLine::Yes);
        drop(mailbox);
        if was == InLine::No {
            self.turns.push(Arc::clone(slot));
        }
    }

    /// Takes partitions whose topic is deleted out of service. Their owners drop the files.
    pub fn remove(&self, parts: &[PartId]) {
        for part in parts {
            let slot = self.slots.write().remove(part);
            if let Some(slot) = slot {
                self.put(&slot, PartLetter::Drop);
            }
        }
    }

    /// Drives owners until the line is closed. To be run on a thread of its own; several may.
    pub fn drive_owners(&self, router: &Router) {
        while let Some(slot) = self.turns.take() {
            let letters: Vec<PartLetter> = slot.mailbox.lock().letters.drain(..).collect();
            if let Err(error) = self.drive(&slot, letters, router) {
                router.broken(&error);
                return;
            }
            let mut mailbox = slot.mailbox.lock();
            if mailbox.letters.is_empty() {
                mailbox.in_line = InLine::No;
            } else {
                drop(mailbox);
                self.turns.push(slot);
            }
        }
    }

    fn drive(&self, slot: &Arc<Slot>, letters: Vec<PartLetter>, router: &Router) -> Result<(), StoreError> {
        let now = self.clock.now();
        let mut owned = slot.owner.lock();
        if let Owned::Unloaded(source) = &*owned {
            *owned = self.load(slot, source)?;
        }
        if letters.iter().any(|letter| matches!(letter, PartLetter::Drop)) {
            drop_partition(&mut owned, slot);
        }
        match &mut *owned {
            Owned::Loaded(owner) => match owner.turn(letters, now) {
                Ok(turn) => {
                    drop(owned);
                    self.finish(slot, turn, router);
                    Ok(())
                }
                Err(StoreError::Damaged(why)) => {
                    self.quarantine(slot, &mut owned, why);
                    Ok(())
                }
                Err(error) => Err(error),
            },
            Owned::Damaged(_) => {
                letters.into_iter().for_each(|letter| answer_damaged(slot.part, letter, router));
                Ok(())
            }
            Owned::Unloaded(_) => {
                letters.into_iter().for_each(|letter| answer_unopened(slot.part, letter, router));
                Ok(())
            }
            Owned::Gone => {
                letters.into_iter().for_each(|letter| answer_gone(slot.part, letter, router));
                Ok(())
            }
        }
    }

    fn load(&self, slot: &Arc<Slot>, source: &Source) -> Result<Owned, StoreError> {
        let (now, shared) = (self.clock.now(), Arc::clone(&slot.shared));
        match PartitionOwner::load(slot.part, source.clone(), self.settings.clone(), shared, now) {
            Ok(owner) => Ok(Owned::Loaded(Box::new(owner))),
            Err(StoreError::Damaged(why)) => {
                let mut owned = Owned::Gone;
                self.quarantine(slot, &mut owned, why);
                Ok(owned)
            }
            Err(StoreError::Full(why)) => {
                tracing::warn!(part = slot.part.0, why, "partition not opened: no space");
                Ok(Owned::Unloaded(Box::new(source.clone())))
            }
            Err(error @ StoreError::Broken(_)) => Err(error),
        }
    }

    /// The partition's files are not what they should be: nothing of it is served, everything else runs.
    fn quarantine(&self, slot: &Slot, owned: &mut Owned, why: String) {
        tracing::error!(part = slot.part.0, why, "partition taken out of service");
        self.damaged.fetch_add(1, Ordering::Relaxed);
        slot.shared.publish(Published::not(Availability::Damaged));
        *owned = Owned::Damaged(why);
    }

    fn finish(&self, slot: &Arc<Slot>, turn: Turn, router: &Router) {
        turn.at_once.into_iter().for_each(|post| router.deliver(post));
        if let Some(syncing) = turn.sync.and_then(|syncing| slot.shared.put_in_line(syncing)) {
            self.syncs.push((Arc::clone(slot), syncing));
        }
    }

    /// Works off syncs until the line is closed. To be run on several threads: each partition has one in flight.
    pub fn drive_syncs(&self, router: &Router) {
        while let Some((slot, syncing)) = self.syncs.take() {
            let began = self.clock.now();
            let done = syncing.run();
            if let Err(error) = done {
                router.broken(&error);
                return;
            }
            router.metrics().synced(SyncedFile::Log, elapsed(began, self.clock.now()));
            let (posts, next) = slot.shared.synced(syncing.end(), syncing.then);
            if let Some(next) = next {
                self.syncs.push((Arc::clone(&slot), next));
            }
            posts.into_iter().for_each(|post| router.deliver(post));
        }
    }

    /// No more turns and syncs: the threads come back when their lines are worked off.
    pub fn close(&self) {
        self.turns.close();
        self.syncs.close();
    }

    /// Whether no letter waits and no sync is in flight.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let quiet = |slot: &Slot| slot.mailbox.lock().in_line == InLine::No && slot.shared.is_idle();
        self.slots.read().values().all(|slot| quiet(slot))
    }

    /// Asks every loaded partition for its recovery point, before a clean stop.
    pub fn close_logs(&self) {
        for (_, slot) in self.all() {
            let loaded = matches!(&*slot.owner.lock(), Owned::Loaded(_));
            if loaded {
                self.put(&slot, PartLetter::Close);
            }
        }
    }
}

/// Drops a deleted topic's files. Readers that still hold them finish with what they have.
fn drop_partition(owned: &mut Owned, slot: &Slot) {
    let source = match std::mem::replace(owned, Owned::Gone) {
        Owned::Unloaded(source) => Some(*source),
        Owned::Loaded(owner) => Some(owner.into_source()),
        Owned::Damaged(_) | Owned::Gone => None,
    };
    slot.shared.publish(Published::not(Availability::Gone));
    if let Some(source) = source
        && let Err(error) = delete_dir(&*source.disk, &source.dir, u128::from_be_bytes(source.topic.id.0))
    {
        tracing::warn!(part = slot.part.0, %error, "files of a deleted partition left behind");
    }
}

fn answer_gone(part: PartId, letter: PartLetter, router: &Router) {
    let unknown = Answer::Refused(Refusal::UnknownTopicOrPartition);
    match letter {
        PartLetter::Append(append) => {
            if let Some(to) = append.to {
                router.deliver(Post::Answer(to, unknown));
            }
        }
        PartLetter::Seal { id, number, .. } => {
            let sealed = Sealed { id, number, part, state: SealState::Gone };
            router.deliver(Post::Ledger(LedgerLetter::Sealed(sealed)));
        }
        PartLetter::Mark(orders) => {
            let debts = orders.into_iter().map(|(debt, _)| debt).collect();
            router.deliver(Post::Ledger(LedgerLetter::Marked(part, debts, MarkResult::Gone)));
        }
        PartLetter::Describe(to) => router.deliver(Post::Answer(to, unknown)),
        PartLetter::Grant(_) | PartLetter::Unseal { .. } | PartLetter::Load | PartLetter::Drop | PartLetter::Close => {}
    }
}

/// There was no room to open the partition. Nothing of a transaction that is open now can be in it, for it would be
/// open; a marker is asked for again.
fn answer_unopened(part: PartId, letter: PartLetter, router: &Router) {
    match letter {
        PartLetter::Seal { id, number, .. } => {
            let sealed = Sealed { id, number, part, state: SealState::Durable(0) };
            router.deliver(Post::Ledger(LedgerLetter::Sealed(sealed)));
        }
        PartLetter::Mark(orders) => {
            let debts = orders.into_iter().map(|(debt, _)| debt).collect();
            let failed = MarkResult::Failed(Refusal::KafkaStorageError);
            router.deliver(Post::Ledger(LedgerLetter::Marked(part, debts, failed)));
        }
        letter @ (PartLetter::Append(_)
        | PartLetter::Describe(_)
        | PartLetter::Grant(_)
        | PartLetter::Unseal { .. }
        | PartLetter::Load
        | PartLetter::Drop
        | PartLetter::Close) => answer_damaged(part, letter, router),
    }
}

/// A damaged partition takes nothing. It counts as sealed, with everything it may hold below: nobody reads it.
fn answer_damaged(part: PartId, letter: PartLetter, router: &Router) {
    let refused = Answer::Refused(Refusal::KafkaStorageError);
    match letter {
        PartLetter::Append(append) => {
            if let Some(to) = append.to {
                router.deliver(Post::Answer(to, refused));
            }
        }
        PartLetter::Seal { id, number, .. } => {
            let sealed = Sealed { id, number, part, state: SealState::Durable(i64::MAX) };
            router.deliver(Post::Ledger(LedgerLetter::Sealed(sealed)));
        }
        PartLetter::Mark(orders) => {
            let debts = orders.into_iter().map(|(debt, _)| debt).collect();
            router.deliver(Post::Ledger(LedgerLetter::Marked(part, debts, MarkResult::Parked)));
        }
        PartLetter::Describe(to) => router.deliver(Post::Answer(to, refused)),
        PartLetter::Grant(_) | PartLetter::Unseal { .. } | PartLetter::Load | PartLetter::Drop | PartLetter::Close => {}
    }
}

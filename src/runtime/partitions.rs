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
use crate::engine::PartId;
use crate::metrics::SyncedFile;
use crate::runtime::ledger::thread::elapsed;
use crate::runtime::line::Line;
use crate::runtime::partition::load::Source;
use crate::runtime::partition::place::{Place, answer_gone};
use crate::runtime::partition::published::Shared;
use crate::runtime::partition::{PartitionOwner, Settings, Syncing, Turn};
use crate::runtime::post::PartLetter;
use crate::runtime::router::Router;
use crate::store::StoreError;

/// One partition.
pub struct Slot {
    /// What owner, syncer and readers share.
    pub shared: Arc<Shared>,
    mailbox: Mutex<Mailbox>,
    place: Mutex<Place>,
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
        let shared = Arc::new(Shared::unloaded());
        let place = Place::unloaded(part, source, (self.settings.clone(), Arc::clone(&shared)));
        self.put_slot(part, shared, place);
    }

    /// Adds a partition whose owner a start has made already.
    pub fn add_loaded(&self, part: PartId, shared: Arc<Shared>, owner: PartitionOwner) {
        let place = Place::loaded(owner, (self.settings.clone(), Arc::clone(&shared)));
        self.put_slot(part, shared, place);
    }

    /// Adds a partition that a start found damaged.
    pub fn add_damaged(&self, part: PartId, why: String) {
        let shared = Arc::new(Shared::unloaded());
        let place = Place::damaged(part, why, (self.settings.clone(), Arc::clone(&shared)));
        self.damaged.fetch_add(1, Ordering::Relaxed);
        self.put_slot(part, shared, place);
    }

    fn put_slot(&self, part: PartId, shared: Arc<Shared>, place: Place) {
        let slot = Slot { shared, mailbox: Mutex::default(), place: Mutex::new(place) };
        self.slots.write().insert(part, Arc::new(slot));
    }

    /// All places, for a driver that has no threads (tests).
    #[cfg(test)]
    pub(crate) fn into_places(self) -> BTreeMap<PartId, (Arc<Shared>, Place)> {
        let slots = self.slots.into_inner().into_iter();
        let place =
            |(part, slot)| Arc::into_inner(slot).map(|slot: Slot| (part, (slot.shared, slot.place.into_inner())));
        slots.filter_map(place).collect()
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
        let reason = |slot: Arc<Slot>| slot.place.lock().why_damaged().map(str::to_owned);
        self.all().into_iter().filter_map(|(_, slot)| reason(slot)).collect()
    }

    /// Puts a letter into a partition's mailbox. Of a partition that is gone the letter's sender is told so.
    pub fn send(&self, part: PartId, letter: PartLetter, router: &Router) {
        match self.slot(part) {
            Some(slot) => self.put(&slot, letter),
            None => answer_gone(part, letter).into_iter().for_each(|post| router.deliver(post)),
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
        let mut place = slot.place.lock();
        let was_damaged = place.why_damaged().is_some();
        let turn = place.turn(letters, self.clock.now())?;
        if place.why_damaged().is_some() && !was_damaged {
            self.damaged.fetch_add(1, Ordering::Relaxed);
        }
        drop(place);
        self.finish(slot, turn, router);
        Ok(())
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
            let posts = slot.shared.synced(syncing.end(), syncing.then);
            posts.into_iter().for_each(|post| router.deliver(post));
            // Only now may the partition count as quiet: what was posted is in its mailbox.
            if let Some(next) = slot.shared.next_sync() {
                self.syncs.push((Arc::clone(&slot), next));
            }
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
            let loaded = slot.place.lock().is_loaded();
            if loaded {
                self.put(&slot, PartLetter::Close);
            }
        }
    }
}

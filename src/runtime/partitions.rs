//! Every partition: its mailbox, its owner, what it publishes; the threads that drive owners and syncs.
//!
//! An owner has no thread of its own. A letter puts its slot in line, once; a thread of the pool takes the slot, gives
//! the owner all letters that have come, and carries out its turn. So a turn gathers by itself while the one before
//! runs, and ten thousand idle partitions cost ten thousand small values.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::clock::Clock;
use crate::engine::partition::MarkOrder;
use crate::engine::{PartId, Producer};
use crate::metrics::SyncedFile;
use crate::runtime::line::Line;
use crate::runtime::partition::load::Source;
use crate::runtime::partition::place::{Place, answer_gone};
use crate::runtime::partition::published::{Availability, Shared};
use crate::runtime::partition::{PartitionOwner, Settings, Syncing};
use crate::runtime::post::{Keeping, PartLetter};
use crate::runtime::router::Router;
use crate::store::StoreError;
use crate::store::space::Space;

/// Markers to be written, with the debts they belong to.
pub type Owes = Vec<(u64, MarkOrder)>;

/// One partition.
pub struct Slot {
    /// What owner, syncer and readers share.
    pub shared: Arc<Shared>,
    mailbox: Mutex<Mailbox>,
    place: Mutex<Place>,
}

impl Slot {
    fn is_open(&self) -> bool {
        self.shared.published().availability == Availability::Open
    }

    /// All letters that have come.
    fn letters(&self) -> Vec<PartLetter> {
        self.mailbox.lock().letters.drain(..).collect()
    }

    /// Letters taken out and not worked off: they come before any that came since.
    fn put_back(&self, letters: Vec<PartLetter>) {
        let mut mailbox = self.mailbox.lock();
        for letter in letters.into_iter().rev() {
            mailbox.letters.push_front(letter);
        }
    }

    /// Takes a letter in. Gives where the slot stood before; it is in line now.
    fn take_in(&self, letter: PartLetter) -> InLine {
        let mut mailbox = self.mailbox.lock();
        mailbox.letters.push_back(letter);
        std::mem::replace(&mut mailbox.in_line, InLine::Yes)
    }
}

/// Whether a letter only changes what its owner remembers.
fn writes_nothing(letter: &PartLetter) -> bool {
    match letter {
        PartLetter::Grant(_) | PartLetter::Seal { .. } | PartLetter::Unseal { .. } => true,
        PartLetter::Append(_)
        | PartLetter::Mark(_)
        | PartLetter::AdminMark { .. }
        | PartLetter::Describe(_)
        | PartLetter::Keep(_)
        | PartLetter::Retain
        | PartLetter::DeleteRecords { .. }
        | PartLetter::Trim(_)
        | PartLetter::LogStartStored { .. }
        | PartLetter::LogStartRefused { .. }
        | PartLetter::Unlink
        | PartLetter::Load
        | PartLetter::Drop
        | PartLetter::Close => false,
    }
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
    /// Why partitions are not served: a list of its own, so that who asks need not wait for a turn.
    damages: Mutex<BTreeMap<PartId, String>>,
    /// Partitions that wait for room.
    without_room: Mutex<BTreeSet<PartId>>,
    /// Partitions out of service whose files may still be there, under a name that a new one may have.
    leaving: Mutex<Vec<Arc<Slot>>>,
}

impl Partitions {
    /// No partition yet.
    #[must_use]
    pub fn new(settings: Settings, clock: Clock) -> Self {
        let (turns, syncs) = (Line::default(), Line::default());
        Self {
            slots: RwLock::default(),
            settings,
            clock,
            turns,
            syncs,
            damages: Mutex::default(),
            without_room: Mutex::default(),
            leaving: Mutex::default(),
        }
    }

    /// Adds a partition; it is loaded at its first letter.
    pub fn add(&self, part: PartId, source: Source) {
        let shared = Arc::new(Shared::unloaded());
        let place = Place::unloaded(part, source, (self.settings.clone(), Arc::clone(&shared)));
        self.put_slot(part, shared, place);
    }

    /// Adds a partition whose owner a start has made already. If there was no room for markers it owes, it is not served
    /// until they are written.
    pub fn add_owing(&self, part: PartId, shared: Arc<Shared>, owner: PartitionOwner, owes: Owes) {
        let place = Place::loaded(owner, (self.settings.clone(), Arc::clone(&shared))).owing(owes);
        self.put_slot(part, shared, place);
    }

    /// Adds a partition that a start had no room to open: it is not served until these markers are written, and what its
    /// log holds open is compared with what the ledger knew to be.
    pub fn add_unopened(&self, part: PartId, source: Source, (known, owes): (Vec<Producer>, Owes)) {
        let shared = Arc::new(Shared::unloaded());
        let place = Place::unloaded(part, source, (self.settings.clone(), Arc::clone(&shared)));
        let place = place.uncompared(known).owing(owes);
        self.put_slot(part, shared, place);
    }

    /// The disk's room.
    #[must_use]
    pub fn space(&self) -> &Space {
        &self.settings.space
    }

    /// Partitions that have something to do as soon as there is room try again.
    pub fn try_again(&self, router: &Router) {
        for part in std::mem::take(&mut *self.without_room.lock()) {
            self.send(part, PartLetter::Load, router);
        }
    }

    /// Adds a partition that a start found damaged.
    pub fn add_damaged(&self, part: PartId, why: String, source: Source) {
        let shared = Arc::new(Shared::unloaded());
        let with = (self.settings.clone(), Arc::clone(&shared));
        let place = Place::damaged(part, (why, source), with, self.clock.now());
        self.note_damage(&place, false);
        self.put_slot(part, shared, place);
    }

    fn put_slot(&self, part: PartId, shared: Arc<Shared>, place: Place) {
        if place.waits_for_room() {
            self.without_room.lock().insert(part);
        }
        let slot = Slot { shared, mailbox: Mutex::default(), place: Mutex::new(place) };
        self.slots.write().insert(part, Arc::new(slot));
    }

    /// All places, for a driver that has no threads (tests).
    #[cfg(any(test, simulator))]
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

    /// Bytes that a recovery would have to verify, of all partitions.
    #[must_use]
    pub fn debt_bytes(&self) -> u64 {
        self.settings.debts.bytes()
    }

    /// Notes that a place of a partition cannot be read; true when nothing was noted of it before. It is over when the
    /// topic goes, or with another start.
    #[must_use]
    pub fn note_unreadable(&self, part: PartId, why: &str) -> bool {
        let mut damages = self.damages.lock();
        let is_new = !damages.contains_key(&part) && self.slot(part).is_some();
        if is_new {
            damages.insert(part, why.to_owned());
        }
        is_new
    }

    /// How many partitions are not served, or not all of them.
    #[must_use]
    pub fn damaged(&self) -> usize {
        self.damages.lock().len()
    }

    /// Why partitions are not served as they should be, for readiness.
    #[must_use]
    pub fn damages(&self) -> Vec<String> {
        self.damages.lock().values().cloned().collect()
    }

    /// Puts a letter into a partition's mailbox. Of a partition that is gone the letter's sender is told so.
    ///
    /// A letter that writes nothing is worked off by the sender itself if the owner is at rest: two threads need not
    /// wake one another for a permission.
    pub fn send(&self, part: PartId, letter: PartLetter, router: &Router) {
        match self.slot(part) {
            Some(slot) if writes_nothing(&letter) && slot.is_open() => self.work_off(&slot, letter, router),
            Some(slot) => self.put(&slot, letter),
            None => answer_gone(part, letter).into_iter().for_each(|post| router.deliver(post)),
        }
    }

    fn put(&self, slot: &Arc<Slot>, letter: PartLetter) {
        if slot.take_in(letter) == InLine::No {
            self.turns.push(Arc::clone(slot));
        }
    }

    fn work_off(&self, slot: &Arc<Slot>, letter: PartLetter, router: &Router) {
        if slot.take_in(letter) == InLine::Yes {
            return;
        }
        let letters = slot.letters();
        // An owner that waits for room would read its partition anew first, and the sender must not wait for that.
        if !letters.iter().all(writes_nothing) || slot.place.lock().waits_for_room() {
            slot.put_back(letters);
            self.turns.push(Arc::clone(slot));
            return;
        }
        match self.step(slot, letters, router) {
            Ok(None) => self.release(slot),
            Ok(Some(syncing)) => {
                self.syncs.push((Arc::clone(slot), syncing));
                self.release(slot);
            }
            Err(error) => router.broken(&error),
        }
    }

    /// Where the files are of a partition that has not been opened since the start.
    #[must_use]
    pub fn unopened(&self, slot: &Slot) -> Option<Source> {
        slot.place.lock().unopened().cloned()
    }

    /// Tells a partition how its topic wants its log kept. One that is not open stays so.
    pub fn keep(&self, part: PartId, keeping: Keeping) {
        if let Some(slot) = self.slot(part) {
            self.put(&slot, PartLetter::Keep(keeping));
        }
    }

    /// Takes partitions whose topic is deleted out of service. Their owners drop the files.
    pub fn remove(&self, parts: &[PartId]) {
        for part in parts {
            let slot = self.slots.write().remove(part);
            if let Some(slot) = slot {
                self.damages.lock().remove(part);
                self.leaving.lock().push(Arc::clone(&slot));
                self.put(&slot, PartLetter::Drop);
            }
        }
    }

    /// Drives owners until the line is closed, and syncs what their turns wrote. To be run on several threads: each
    /// partition has one turn and one sync under way at a time, and a turn may run while the sync before it does.
    pub fn drive_owners(&self, router: &Router) {
        while let Some(slot) = self.turns.take() {
            let stepped = self.step(&slot, slot.letters(), router);
            if stepped.is_ok() {
                self.release(&slot);
            }
            let done = stepped.and_then(|syncing| syncing.map_or(Ok(()), |syncing| self.sync(&slot, syncing, router)));
            if let Err(error) = done {
                router.broken(&error);
                return;
            }
        }
    }

    /// One turn with these letters. Gives the sync that it is for the caller to run.
    fn step(&self, slot: &Arc<Slot>, letters: Vec<PartLetter>, router: &Router) -> Result<Option<Syncing>, StoreError> {
        if slot.place.lock().is_unloaded() {
            self.finish_drops()?;
        }
        let mut place = slot.place.lock();
        let was_damaged = place.why_damaged().is_some();
        let turn = place.turn(letters, self.clock.now())?;
        self.note_damage(&place, was_damaged);
        if place.waits_for_room() {
            self.without_room.lock().insert(place.part());
        }
        if slot.shared.published().availability == Availability::Gone {
            self.leaving.lock().retain(|leaving| !Arc::ptr_eq(leaving, slot));
        }
        drop(place);
        turn.at_once.into_iter().for_each(|post| router.deliver(post));
        Ok(turn.sync.and_then(|syncing| slot.shared.put_in_line(syncing)))
    }

    /// Before a partition is opened: an owner of the same name that is on its way out must be through with its last
    /// turn, or it would write into the new one's directory.
    pub(in crate::runtime) fn finish_drops(&self) -> Result<(), StoreError> {
        let leaving = self.leaving.lock().clone();
        for slot in &leaving {
            let mut place = slot.place.lock();
            place.turn(vec![PartLetter::Drop], self.clock.now())?;
            self.damages.lock().remove(&place.part());
        }
        self.leaving.lock().retain(|slot| !leaving.iter().any(|gone| Arc::ptr_eq(gone, slot)));
        Ok(())
    }

    /// After a turn, with the place still held: a partition that was dropped in it no longer counts.
    fn note_damage(&self, place: &Place, was_damaged: bool) {
        match place.why_damaged() {
            Some(why) if !was_damaged => {
                self.damages.lock().insert(place.part(), why.to_owned());
            }
            None if was_damaged => {
                self.damages.lock().remove(&place.part());
            }
            Some(_) | None => {}
        }
    }

    /// The slot's turn is over: it goes back in line if letters have come meanwhile.
    fn release(&self, slot: &Arc<Slot>) {
        let mut mailbox = slot.mailbox.lock();
        if mailbox.letters.is_empty() {
            mailbox.in_line = InLine::No;
            return;
        }
        drop(mailbox);
        self.turns.push(Arc::clone(slot));
    }

    /// Brings a partition's log to disk, again as long as more was written meanwhile.
    fn sync(&self, slot: &Arc<Slot>, first: Syncing, router: &Router) -> Result<(), StoreError> {
        let mut next = Some(first);
        while let Some(syncing) = next {
            let began = self.clock.exact();
            match syncing.run() {
                Ok(()) => {}
                // Its directory is away under it, with the topic: nobody will read what it failed to bring to disk.
                Err(_) if slot.shared.published().availability == Availability::Gone => {}
                Err(error) => return Err(error),
            }
            router.metrics().synced(SyncedFile::Log, self.clock.exact().saturating_sub(began));
            let posts = slot.shared.synced(syncing.end(), syncing.then);
            posts.into_iter().for_each(|post| router.deliver(post));
            // Only now may the partition count as quiet: what was posted is in its mailbox.
            next = slot.shared.next_sync();
        }
        Ok(())
    }

    /// Works off syncs that came of a turn on a thread that must not wait for the disk.
    pub fn drive_syncs(&self, router: &Router) {
        while let Some((slot, syncing)) = self.syncs.take() {
            if let Err(error) = self.sync(&slot, syncing, router) {
                router.broken(&error);
                return;
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

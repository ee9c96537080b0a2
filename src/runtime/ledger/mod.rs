//! The ledger's owner: takes letters in order, decides on one state, stores once, answers after.
//!
//! A turn is: take in what others report (in memory only) → run the steps on the upper layer → one commit → the upper
//! layer becomes the state → posts. A post that rests on this commit or an earlier one is *held* until the commit is
//! flushed; the exceptions leave at once: an add's grants and answer (its row is written, and the transaction's first
//! Produce waits for the flush), unless a partition is in a transaction for the first time ever; seals; and the success
//! of an EndTxn whose markers are on disk.

mod administration;
pub(in crate::runtime) mod answers;
pub mod ending;
mod phases;
pub mod steps;
pub mod thread;
mod tools;
pub mod wait;
pub mod work;

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::catalog::Defaults;
use crate::engine::group;
use crate::engine::ledger::rows::{PartRow, RecoveryPoint};
use crate::engine::ledger::{Ledger, Waits};
use crate::engine::partition::Grant;
use crate::engine::txn::end::Cause;
use crate::engine::{GroupId, Now, Offset, Outcome, PartId, Producer, Refusal, ReplyTo, TopicId, TransactionalId};
use crate::known_bugs::{Bug, is_in};
use crate::runtime::events::{Event, Events};
use crate::runtime::post::{Answer, Command, LedgerLetter, MoveLogStart, PartLetter, Post};
use crate::runtime::tracks::Moment;
use crate::store::StoreError;
use crate::store::meta::LedgerStore;
use ending::{Ending, Want};
use phases::Phases;
use wait::Waiting;

/// What the ledger's owner is told once.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The coordinator epoch that markers carry: this start's number.
    pub incarnation: i32,
    /// Upper limit of a transaction's timeout, in milliseconds.
    pub max_timeout_ms: i32,
    /// Idle transactional ids are forgotten after this, in milliseconds.
    pub id_expiration_ms: i64,
    /// Committed offsets of idle groups are forgotten after this, in milliseconds.
    pub offsets_retention_ms: i64,
    /// Whether EndTxn is answered when its markers are written, not yet synced (`marker_sync = "redo"`).
    pub redo: bool,
    /// Limits of groups.
    pub groups: group::Settings,
    /// What a topic gets that does not say.
    pub topics: Defaults,
}

/// The owner. A plain value: whoever drives it carries its letters.
pub struct LedgerOwner {
    pub(crate) ledger: Ledger,
    store: Box<dyn LedgerStore>,
    settings: Settings,
    events: Events,
    endings: BTreeMap<TransactionalId, Ending>,
    /// Decisions being carried out, as far as metrics tell of them.
    phases: BTreeMap<u64, Phases>,
    /// Transactions whose end a step of this turn began.
    begun: BTreeSet<u64>,
    /// Gathers so far.
    rounds: u64,
    /// Partitions whose first permission ever rests on a row that is not flushed yet: others wait with it.
    first_unflushed: BTreeSet<PartId>,
    waiting: BTreeMap<TransactionalId, Vec<Waiting>>,
    /// Decided ends whose last change of stage has not been looked at.
    moved: BTreeSet<u64>,
    /// Debts on disk everywhere, to be forgotten with the next commit.
    paid: BTreeSet<u64>,
    forget_by_mono_ms: Option<i64>,
    next_upkeep_mono_ms: i64,
    full: Option<String>,
    /// The process stops: nobody is to wait.
    settled: bool,
}

/// How far a turn's commit must have come.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needs {
    /// As far as `durability` asks of any answer.
    #[default]
    AsSet,
    /// On disk under `durability = "relaxed"` too: files go when it is stored, and their loss is not to be met by a row
    /// that still counts on them.
    Disk,
}

/// What a turn sends.
#[derive(Debug, Default)]
pub struct Turn {
    /// Leaves now.
    pub at_once: Vec<Post>,
    /// Leaves when commit `upto` is flushed.
    pub held: Vec<Post>,
    /// The commit that `held` waits for.
    pub upto: u64,
    /// What `upto` must be for `held` to leave.
    pub needs: Needs,
}

/// One step of a turn.
#[derive(Debug, Clone)]
enum Step {
    /// A request.
    Ask(ReplyTo, Command),
    /// Everything a decision needs has been gathered.
    Decide(TransactionalId),
    /// An open transaction outlived its timeout.
    TimeOut(TransactionalId),
    /// A group's timer is due.
    GroupTimer(GroupId),
    /// A debt is paid everywhere.
    Forget(u64),
    /// A partition's recovery point, and its first offset.
    Checkpoint(PartId, RecoveryPoint, Offset),
    /// A partition's new first offset.
    MoveLogStart(MoveLogStart),
    /// Expiry of ids and offsets.
    Upkeep,
    /// The last step: everyone who is parked is told to go elsewhere.
    Stop,
}

impl Step {
    /// Whether a commit comes of it in any case, for paid debts to go with.
    fn stores(&self) -> bool {
        match self {
            Self::Decide(_) | Self::Checkpoint(..) | Self::MoveLogStart(_) => true,
            Self::Ask(_, command) => matches!(command, Command::Add { .. } | Command::StageOffsets(_)),
            Self::TimeOut(_) | Self::GroupTimer(_) | Self::Forget(_) | Self::Upkeep | Self::Stop => false,
        }
    }
}

/// What follows from a step once it is stored.
#[derive(Debug, Default)]
struct Effects {
    /// Posts that need only be written, not flushed.
    pub(super) at_once: Vec<Post>,
    /// Posts that wait for the flush.
    pub(super) held: Vec<Post>,
    /// Something to do in the owner's own memory.
    pub(super) then: Vec<Then>,
}

/// What became of topics and partitions.
#[derive(Debug, Default)]
struct CatalogChange {
    created: Vec<(PartId, PartRow)>,
    deleted: Vec<PartId>,
    changed: Vec<TopicId>,
}

/// A change of the owner's memory, made only after the commit.
#[derive(Debug)]
enum Then {
    /// A transaction has begun; said only to whoever keeps traces.
    Begun { id: TransactionalId, number: u64, producer: Producer },
    /// Begin, or join, the end of an open transaction.
    Begin { id: TransactionalId, number: u64, want: Want },
    /// A decision is stored.
    Decided { id: TransactionalId, seq: Option<u64>, outcome: Outcome, cause: Cause, took_ms: i64 },
    /// The request waits until the id's decision is carried out.
    Wait { id: TransactionalId, waiting: Waiting },
    /// The gather is void: what was open is not any more.
    Void(TransactionalId),
    /// The catalog changed.
    Catalog(CatalogChange),
    /// Answered behind what was said before it.
    Answer(ReplyTo, Answer),
    /// Say it: log line and metric.
    Say(Event),
}

impl LedgerOwner {
    /// The owner of `ledger`, storing into `store`.
    #[must_use]
    pub fn new(ledger: Ledger, store: Box<dyn LedgerStore>, settings: Settings, events: Events) -> Self {
        for (id, txn, ongoing) in ledger.open_transactions() {
            let (number, producer, found_since_wall_ms) = (ongoing.number, txn.producer, Some(ongoing.started_wall_ms));
            events.note(&Moment::Begun { number, id, producer, found_since_wall_ms });
        }
        let phases = Phases::inherited(&ledger);
        Self {
            ledger,
            store,
            settings,
            events,
            endings: BTreeMap::new(),
            phases,
            begun: BTreeSet::new(),
            rounds: 0,
            first_unflushed: BTreeSet::new(),
            waiting: BTreeMap::new(),
            moved: BTreeSet::new(),
            paid: BTreeSet::new(),
            forget_by_mono_ms: None,
            next_upkeep_mono_ms: 0,
            full: None,
            settled: false,
        }
    }

    /// One turn.
    ///
    /// # Errors
    /// `Broken` or `Damaged`: it is not known what is stored; the process starts over, nobody is answered.
    pub fn turn(&mut self, letters: Vec<LedgerLetter>, now: Now) -> Result<Turn, StoreError> {
        let mut turn = Turn::default();
        let mut steps = Vec::with_capacity(letters.len());
        for letter in letters {
            self.take_in(letter, now, &mut turn, &mut steps);
        }
        // A request that was on its way when it was said that the process stops waits for nobody either.
        if self.settled && steps.iter().any(|step| matches!(step, Step::Ask(..))) {
            steps.push(Step::Stop);
        }
        self.look_at_moved(now, &mut turn, &mut steps);
        self.ledger.commit();
        self.due(now, &mut turn, &mut steps);
        let mut decided = BTreeSet::new();
        steps.retain(|step| !matches!(step, Step::Decide(id) if !decided.insert(id.clone())));
        let effects = self.store_steps(&steps, now)?;
        let mut changes = changes(&effects);
        // Files are made and removed by what these say; a row that a power cut took back would leave files that nobody knows.
        if changes.is_some() || steps.iter().any(|step| matches!(step, Step::MoveLogStart(_))) {
            turn.needs = Needs::Disk;
        }
        for effect in effects {
            self.carry_out(effect, now, &mut changes, &mut turn);
        }
        if self.settled {
            self.refuse_parked(&mut turn);
        }
        self.begun.clear();
        self.send_markers(now, &mut turn);
        self.ledger.commit();
        turn.upto = self.store.written();
        if is_in(Bug::AnswerBeforeStore) {
            let (answers, held) = turn.held.into_iter().partition(|post| matches!(post, Post::Answer(..)));
            turn.held = held;
            turn.at_once.extend::<Vec<Post>>(answers);
        }
        Ok(turn)
    }

    /// The next moment at which a turn is due without a letter, on the monotonic clock.
    #[must_use]
    pub fn deadline_mono_ms(&self) -> Option<i64> {
        let own = self.ledger.deadline_mono_ms();
        let waits = self.waiting.values().flatten().map(|waiting| waiting.until_mono_ms).min();
        let retries = self.endings.values().filter_map(|ending| ending.retry_mono_ms).min();
        [own, waits, retries, self.forget_by_mono_ms, Some(self.next_upkeep_mono_ms)].into_iter().flatten().min()
    }

    /// Why the ledger refuses to store, while it does: the disk is full.
    #[must_use]
    pub fn refuses(&self) -> Option<&str> {
        self.full.as_deref()
    }

    /// Work for quiet moments.
    ///
    /// # Errors
    /// `Broken`.
    pub fn tidy(&mut self, idle: bool) -> Result<(), StoreError> {
        match self.store.tidy(idle) {
            Err(StoreError::Full(_)) | Ok(()) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The store, for a clean stop.
    #[must_use]
    pub fn into_store(self) -> Box<dyn LedgerStore> {
        self.store
    }

    fn take_in(&mut self, letter: LedgerLetter, now: Now, turn: &mut Turn, steps: &mut Vec<Step>) {
        match letter {
            LedgerLetter::Ask(to, command) => steps.push(Step::Ask(to, command)),
            LedgerLetter::Sealed(sealed) => {
                if let Some(step) = self.note_seal(sealed) {
                    steps.push(step);
                }
            }
            LedgerLetter::Marked(part, debts, result) => self.note_marked(part, &debts, result, now),
            LedgerLetter::Checkpoint(part, point, log_start) => steps.push(Step::Checkpoint(part, point, log_start)),
            LedgerLetter::MoveLogStart(moved) => steps.push(Step::MoveLogStart(moved)),
            LedgerLetter::FirstFlushed(parts) => self.first_unflushed.retain(|part| !parts.contains(part)),
            LedgerLetter::Wake => {}
            LedgerLetter::Room => self.full = None,
            LedgerLetter::Settle | LedgerLetter::Stop => {
                self.settled = true;
                self.refuse_waiting(turn);
                steps.push(Step::Stop);
            }
        }
    }

    fn due(&mut self, now: Now, turn: &mut Turn, steps: &mut Vec<Step>) {
        for who in self.ledger.due(now.mono_ms) {
            match who {
                Waits::Txn(id) if self.is_being_fenced(&id) => self.ledger.pause_timeout(&id),
                Waits::Txn(id) => steps.push(Step::TimeOut(id)),
                Waits::Owed(_) => {}
                Waits::Group(id) => steps.push(Step::GroupTimer(id)),
            }
        }
        let again: Vec<TransactionalId> = (self.endings.iter())
            .filter(|(_, ending)| ending.retry_mono_ms.is_some_and(|at| at <= now.mono_ms))
            .map(|(id, _)| id.clone())
            .collect();
        steps.extend(again.into_iter().map(Step::Decide));
        self.stop_waiting(now, turn);
        if now.mono_ms >= self.next_upkeep_mono_ms {
            self.next_upkeep_mono_ms = now.mono_ms.saturating_add(UPKEEP_MS);
            steps.push(Step::Upkeep);
        }
        if !self.paid.is_empty() {
            let by = *self.forget_by_mono_ms.get_or_insert(now.mono_ms.saturating_add(PAID_MS));
            if by <= now.mono_ms || steps.iter().any(Step::stores) {
                self.forget_by_mono_ms = None;
                steps.extend(std::mem::take(&mut self.paid).into_iter().map(Step::Forget));
            }
        }
    }

    fn is_being_fenced(&self, id: &TransactionalId) -> bool {
        self.endings.get(id).is_some_and(|ending| ending.fencing().is_some())
    }

    /// Stores all steps in one commit. If there is no room, each is tried once alone, and what then finds none is
    /// refused: nothing changed for it.
    fn store_steps(&mut self, steps: &[Step], now: Now) -> Result<Vec<Effects>, StoreError> {
        let effects: Vec<Effects> = steps.iter().map(|step| self.run(step, now)).collect();
        if self.ledger.rows().is_empty() {
            self.ledger.commit();
            return Ok(effects);
        }
        match self.store.commit(self.ledger.rows()) {
            Ok(_) => {
                self.ledger.commit();
                self.full = None;
                Ok(effects)
            }
            Err(StoreError::Full(why)) => {
                self.ledger.discard();
                self.begun.clear();
                self.events.metrics().ledger_refused();
                self.full = Some(why);
                self.store_one_by_one(steps, now)
            }
            Err(error @ (StoreError::Broken(_) | StoreError::Damaged(_))) => Err(error),
        }
    }

    fn store_one_by_one(&mut self, steps: &[Step], now: Now) -> Result<Vec<Effects>, StoreError> {
        // What a refused decision gives up leaves before anything that another step begins anew: a permission that is opened
        // behind the seal of the next gathering would admit what its end does not know of.
        let (mut undone, mut all) = (Vec::new(), Vec::with_capacity(steps.len()));
        let why = self.full.take();
        for step in steps {
            let effects = self.run(step, now);
            let stored = if self.ledger.rows().is_empty() { Ok(0) } else { self.store.commit(self.ledger.rows()) };
            match stored {
                Ok(_) => {
                    self.ledger.commit();
                    all.push(effects);
                }
                Err(StoreError::Full(_)) => {
                    self.ledger.discard();
                    self.full.clone_from(&why);
                    let refused = self.refuse(step, now);
                    let first = matches!(step, Step::Decide(_));
                    if first { &mut undone } else { &mut all }.push(refused);
                }
                Err(error @ (StoreError::Broken(_) | StoreError::Damaged(_))) => return Err(error),
            }
        }
        undone.append(&mut all);
        Ok(undone)
    }

    /// A step that found no room: the client is told to ask again; what nobody asked for is tried again later.
    fn refuse(&mut self, step: &Step, now: Now) -> Effects {
        let mut effects = Effects::default();
        match step {
            Step::Ask(to, _) => effects.held.push(Post::Answer(*to, Answer::Refused(Refusal::NotCoordinator))),
            Step::Decide(id) => effects.at_once = self.undo_ending(id, now),
            Step::Forget(seq) => {
                self.paid.insert(*seq);
            }
            Step::GroupTimer(id) => {
                self.ledger.put_off(Waits::Group(id.clone()), now.mono_ms.saturating_add(GROUP_AGAIN_MS));
            }
            Step::MoveLogStart(MoveLogStart { part, to, .. }) => {
                effects.held.push(Post::Part(*part, PartLetter::LogStartRefused { to: *to }));
            }
            Step::TimeOut(_) | Step::Checkpoint(..) | Step::Upkeep | Step::Stop => {}
        }
        effects
    }

    fn carry_out(&mut self, effects: Effects, now: Now, changes: &mut Option<CatalogChange>, turn: &mut Turn) {
        let row = self.store.written();
        turn.at_once.extend(effects.at_once.into_iter().map(|post| with_row(post, row)));
        turn.held.extend(effects.held);
        for then in effects.then {
            match then {
                Then::Begun { id, number, producer } => {
                    self.events.note(&Moment::Begun { number, id: &id, producer, found_since_wall_ms: None });
                }
                Then::Begin { id, number, want } => self.begin_ending(&id, number, want, (now, turn)),
                Then::Decided { id, seq, outcome, cause, took_ms } => {
                    self.events.say(&Event::Decided { id: id.clone(), outcome, cause, open_ms: took_ms });
                    self.begin_phases(&id, seq, (outcome, cause, took_ms), now);
                    self.decided(&id, seq, (outcome, cause), (now, turn));
                }
                Then::Wait { id, waiting } => self.waiting.entry(id).or_default().push(waiting),
                Then::Void(id) => self.void(&id, turn),
                Then::Catalog(_) => turn.held.extend(changes.take().map(|all| self.catalog_news(all))),
                Then::Answer(to, answer) => turn.held.push(Post::Answer(to, answer)),
                Then::Say(event) => self.events.say(&event),
            }
        }
    }
}

/// What a turn changes in the catalog, as one change: its news is the catalog after all of them, and nobody may see a topic
/// there whose partitions are only told of later.
fn changes(effects: &[Effects]) -> Option<CatalogChange> {
    let mut all: Option<CatalogChange> = None;
    for then in effects.iter().flat_map(|effect| &effect.then) {
        if let Then::Catalog(CatalogChange { created, deleted, changed }) = then {
            let all = all.get_or_insert_default();
            all.created.extend_from_slice(created);
            all.deleted.extend_from_slice(deleted);
            all.changed.extend_from_slice(changed);
        }
    }
    if let Some(CatalogChange { created, deleted, .. }) = &mut all {
        created.retain(|(part, _)| !deleted.contains(part));
    }
    all
}

/// A grant says which commit holds the row it rests on: the last one written, which is that one or a later one.
fn with_row(post: Post, row: u64) -> Post {
    match post {
        Post::Part(part, PartLetter::Grant(grant)) => Post::Part(part, PartLetter::Grant(Grant { row, ..grant })),
        post @ (Post::Answer(..) | Post::Ledger(_) | Post::Part(..) | Post::Catalog(_)) => post,
    }
}

/// How long a group's timer that found no room waits for its next try, in milliseconds.
const GROUP_AGAIN_MS: i64 = 1_000;
/// How often idle ids and offsets are looked at, in milliseconds.
const UPKEEP_MS: i64 = 60_000;
/// How long a paid debt waits for another commit to go with, in milliseconds.
const PAID_MS: i64 = 1_000;

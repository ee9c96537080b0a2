//! Drives a world through whatever strikes it: what is broken starts again, what is refused is asked again.

use std::cell::Cell;
use std::path::PathBuf;

use super::script::Attempt;
use super::strike::{After, Strike, What};
use crate::engine::{Refusal, ReplyTo};
use crate::runtime::ledger::LedgerOwner;
use crate::runtime::post::Answer;
use crate::runtime::world::build::How;
use crate::runtime::world::invariants::Shown;
use crate::runtime::world::{Db, World};
use crate::store::faults::{Change, Fault, Operation, Rule};
use crate::store::mem_disk::MemDisk;
use crate::vfs;

/// Times a request is asked before it counts as stuck.
const ASKED_MAX: u32 = 40;
/// Refusals after which somebody makes room on the disk.
const REFUSED_BEFORE_SPACE: u32 = 7;
/// Pause of a client that was refused, in milliseconds.
const PAUSE_MS: i64 = 120;
/// Failed starts after which somebody makes room on the disk.
const STARTS_BEFORE_SPACE: u32 = 2;
/// Steps without time passing: more is a broker that spins.
const STEPS_MAX: usize = 5_000;
/// Restarts of one history: more is a broker that does not come up.
const RESTARTS_MAX: u32 = 8;

/// What the process is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Opening what the disk holds.
    Starting,
    /// Serving clients.
    Serving,
    /// Ending in order.
    Stopping,
}

/// Which files reach the disk first, where both have something to bring there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The ledger's rows.
    Rows,
    /// The partitions' logs.
    Logs,
}

/// One history under way.
pub(super) struct Play {
    pub(super) world: World,
    pub(super) attempts: Vec<Attempt>,
    pub(super) plain: Vec<(String, bool)>,
    order: Order,
    phase: Phase,
    strike: Option<Strike>,
    /// What strikes the first start after that.
    second: Option<Strike>,
    shown: Shown,
    /// Something that was written may have been lost: a permission nobody built on, at most.
    pub(super) lossy: bool,
    full: bool,
    restarts: u32,
    refused: u32,
    /// Weaknesses met that are known.
    pub(super) known: Vec<&'static str>,
    /// The changes that the first restart asked for.
    pub(super) recovery: Vec<Change>,
}

thread_local! {
    static NAME: Cell<u64> = const { Cell::new(0) };
}

/// The name under which this thread's SQLite finds its disk.
fn mounted(disk: &MemDisk) -> PathBuf {
    let name = format!("points-{}", NAME.get());
    vfs::mount(&name, disk);
    PathBuf::from(format!("/{name}"))
}

/// Gives this thread a name of its own for its disks.
pub(super) fn name_thread(number: u64) {
    NAME.set(number);
}

impl Play {
    /// Starts on a disk.
    pub(super) fn on(
        (how, order): (How, Order),
        disk: MemDisk,
        strikes: (Option<Strike>, Option<Strike>),
        tracing: bool,
    ) -> Self {
        let (strike, second) = strikes;
        if let Some(strike) = &strike {
            strike.arm(&disk);
        }
        disk.faults().note();
        let mut world = World::on_disk(how, Db::Simulated { mount: mounted, wal: None }, disk);
        world.tracing = tracing;
        let full = strike.as_ref().is_some_and(|strike| strike.what == What::FullFromHere);
        let mut play = Self {
            world,
            attempts: Vec::new(),
            plain: Vec::new(),
            order,
            phase: Phase::Starting,
            strike,
            second,
            shown: Shown::default(),
            lossy: false,
            full,
            restarts: 0,
            refused: 0,
            known: Vec::new(),
            recovery: Vec::new(),
        };
        play.recover();
        play
    }

    // ---- time ----

    /// Time passes. Gives whether the process is still the same one.
    pub(super) fn wait(&mut self, ms: i64) -> bool {
        self.run_for(ms);
        self.tidy();
        let same = self.world.broken.is_none();
        self.recover();
        if same {
            self.shown.look(&self.world);
        }
        same
    }

    /// Time passes, and at every moment at which something is due it happens.
    fn run_for(&mut self, ms: i64) {
        let end = self.world.now.mono_ms + ms;
        loop {
            let mut steps = 0;
            while self.step() {
                steps += 1;
                assert!(steps < STEPS_MAX, "P6: it does not come to rest");
            }
            let now = self.world.now.mono_ms;
            if self.world.broken.is_some() || now >= end {
                return;
            }
            let due = self.world.owner.as_ref().and_then(LedgerOwner::deadline_mono_ms);
            self.world.advance((due.unwrap_or(end).min(end) - now).max(1));
        }
    }

    fn step(&mut self) -> bool {
        let world = &mut self.world;
        let ledger_first = !world.inbox.is_empty() || world.is_due();
        if self.order == Order::Rows || world.broken.is_some() || ledger_first {
            return world.step_anything();
        }
        if let Some(part) = world.find(|entry| !entry.mail.is_empty()) {
            world.turn_part(part);
            return true;
        }
        if let Some(part) = world.find(|entry| entry.sync.is_some()) {
            world.sync_part(part);
            return true;
        }
        world.step_anything()
    }

    /// What the ledger's thread does in quiet moments.
    fn tidy(&mut self) {
        let Some(owner) = self.world.owner.as_mut().filter(|_| self.world.broken.is_none()) else { return };
        if let Err(error) = owner.tidy(true) {
            self.world.breaks(&error.to_string());
        }
        self.world.lost_power();
    }

    /// There is room on the disk again.
    pub(super) fn make_space(&mut self) {
        self.full = false;
        self.world.disk.faults().lift();
    }

    // ---- restarts ----

    /// A process that has ended is started, until one comes up.
    fn recover(&mut self) {
        self.world.lost_power();
        while let Some(why) = self.world.broken.clone() {
            self.restarts += 1;
            assert!(self.restarts <= RESTARTS_MAX, "it does not come up: {why}");
            let disk = self.found(&why);
            self.phase = Phase::Starting;
            if let Some(second) = self.second.take() {
                second.arm(&disk);
                self.full = second.what == What::FullFromHere;
                self.strike = Some(second);
            } else if self.full && self.restarts <= STARTS_BEFORE_SPACE {
                for kind in [Operation::Write, Operation::Create] {
                    disk.faults().add(Rule::always(kind, "", Fault::NoSpace));
                }
            }
            disk.faults().note();
            self.world.restart(disk, usize::MAX);
            if self.restarts == 1 {
                self.recovery = self.world.disk.faults().noted();
            }
            self.world.lost_power();
        }
        self.phase = Phase::Serving;
    }

    /// The disk as the next process finds it.
    fn found(&mut self, why: &str) -> MemDisk {
        let strike = self.strike.as_ref().unwrap_or_else(|| panic!("broken by nothing: {why}"));
        self.lossy |= strike.loses();
        let off = self.world.disk.power().is_off();
        match strike.what {
            What::Gone(After::Cut(cut)) if off => return self.world.disk.crash(cut),
            What::Gone(_) => assert!(off, "broken by nothing: {why}"),
            What::Once(_) | What::FullFromHere => {}
        }
        if strike.is_no_space() && self.phase != Phase::Stopping {
            let known = super::known::excuse(self.phase, why);
            self.known.push(known.unwrap_or_else(|| panic!("no space ended the process ({:?}): {why}", self.phase)));
        }
        self.world.disk.killed()
    }

    /// A stop in order, and the next start.
    pub(super) fn stop_and_start(&mut self) {
        self.phase = Phase::Stopping;
        self.world.stop();
        self.world.lost_power();
        if self.world.broken.is_none() {
            self.phase = Phase::Starting;
            let disk = self.world.disk.clone();
            self.world.restart(disk, usize::MAX);
        }
        self.recover();
    }

    // ---- requests ----

    /// Asks until there is an answer that is not "ask again".
    ///
    /// # Errors
    /// Any other refusal.
    pub(super) fn ask(&mut self, question: impl Fn(&mut World) -> ReplyTo) -> Result<Answer, Refusal> {
        for _ in 0..ASKED_MAX {
            let to = question(&mut self.world);
            match self.answered(to) {
                None => {}
                Some(Answer::Refused(refusal) | Answer::RefusedAt(refusal, _)) if is_passing(refusal) => {
                    self.refused += 1;
                    if self.refused >= REFUSED_BEFORE_SPACE {
                        self.make_space();
                    }
                    self.wait(PAUSE_MS);
                }
                Some(Answer::Refused(refusal) | Answer::RefusedAt(refusal, _)) => return Err(refusal),
                Some(answer) => return Ok(answer),
            }
        }
        panic!("P6: refused for ever");
    }

    /// The answer to a request, unless the process ends before.
    pub(super) fn answered(&mut self, to: ReplyTo) -> Option<Answer> {
        self.run_for(0);
        for _ in 0..100 {
            if self.world.is_answered(to) {
                // What was said before the process ended was said.
                let answer = self.world.answer(to);
                self.wait(0);
                return Some(answer);
            }
            if !self.wait(20) {
                // The last thing it did may have been to answer.
                return self.world.is_answered(to).then(|| self.world.answer(to));
            }
        }
        panic!("P6: {to:?} is never answered");
    }
}

impl Drop for Play {
    fn drop(&mut self) {
        self.world.owner = None;
        vfs::unmount(&format!("points-{}", NAME.get()));
    }
}

/// Whether a client asks again when it is told this.
fn is_passing(refusal: Refusal) -> bool {
    matches!(refusal, Refusal::ConcurrentTransactions | Refusal::NotCoordinator | Refusal::KafkaStorageError)
}

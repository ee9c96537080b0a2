//! One seed, one run: a world, its clients, its troubles, and the calm in the end in which everything is looked at.

mod troubles;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::checks::p7_memory::Unseen;
use crate::checks::{Found, end_to_end, p1_durable, p2_atomic, p3_isolated, p4_fenced, p5_once, p6_live};
use crate::dice::Dice;
use crate::edge::{Answered, Edge, Reply, Request};
use crate::engine::ledger::offsets::Seen;
use crate::engine::log::Retention;
use crate::engine::{Outcome, PartId};
use crate::history::History;
use crate::plain::{PASSING, Plain};
use crate::process::{Around, Process};
use crate::reader::Readers;
use crate::runtime::partition::published::Availability;
use crate::runtime::post::{PartLetter, Post};
use crate::runtime::world::{Db, World};
use crate::store::mem_disk::MemDisk;
use crate::swarm::Swarm;
use crate::vfs;

/// Virtual milliseconds that everything may need to come to rest once nothing is wrong.
const CALM_MS: i64 = 60_000;
/// Groups, each with one input partition.
const GROUPS: [&str; 2] = ["g0", "g1"];
/// Transactional ids, each with the group it works for.
const IDS: [(&str, usize); 4] = [("t0", 0), ("t1", 0), ("t2", 1), ("t3", 1)];

/// A run under way.
pub struct Run {
    /// What it is like.
    pub swarm: Swarm,
    /// The broker.
    pub world: World,
    /// Steps of owners, syncs and flushes so far.
    pub turns: u64,
    dice: Dice,
    edge: Edge,
    history: History,
    readers: Readers,
    unseen: Unseen,
    processes: Vec<Process>,
    plains: Vec<Plain>,
    outputs: Vec<PartId>,
    inputs: Vec<PartId>,
    now_ms: i64,
    whos: usize,
    /// A fault that ends the process may have struck since the start.
    fatal: bool,
}

/// Gives SQLite the way to a disk. Each thread has one world at a time.
fn mount(disk: &MemDisk) -> PathBuf {
    static THREADS: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NAME: String = format!("run{}", THREADS.fetch_add(1, Ordering::Relaxed));
    }
    NAME.with(|name| {
        vfs::mount(name, disk);
        PathBuf::from(format!("/{name}"))
    })
}

impl Run {
    /// The run of a seed, before its first step.
    #[must_use]
    pub fn new(seed: u64, tracing: bool) -> Self {
        vfs::begin_anew();
        let mut dice = Dice::new(seed);
        let swarm = Swarm::new(&mut dice);
        let mut world = World::on(swarm.how, Db::Simulated { mount, wal: None });
        world.tracing = tracing;
        let inputs = world.topic("in", i32::try_from(GROUPS.len()).unwrap());
        let outputs = world.topic("out", 3);
        let mut run = Self {
            swarm,
            world,
            turns: 0,
            dice,
            edge: Edge::default(),
            history: History::default(),
            readers: Readers::default(),
            unseen: Unseen::default(),
            processes: Vec::new(),
            plains: Vec::new(),
            outputs,
            inputs,
            now_ms: 0,
            whos: 0,
            fatal: false,
        };
        for (id, group) in IDS {
            let process = run.process(id, group);
            run.processes.push(process);
        }
        let commits = (run.who(), run.inputs[0]);
        let others = [run.who(), run.who(), run.who(), run.who(), run.who()];
        run.plains = vec![
            Plain::commits(commits.0, "c", commits.1),
            Plain::idempotent(others[0]),
            Plain::idempotent(others[1]),
            Plain::writes(others[2]),
            Plain::topics(others[3]),
            Plain::aborts(others[4]),
        ];
        run
    }

    fn who(&mut self) -> usize {
        self.whos += 1;
        self.whos
    }

    fn process(&mut self, id: &str, group: usize) -> Process {
        let who = self.who();
        Process::new(who, id, GROUPS[group], self.inputs[group], &self.outputs)
    }

    /// Attempts, those told committed, those told aborted; batches.
    #[must_use]
    pub fn counts(&self) -> [usize; 4] {
        let told = |outcome| self.history.attempts.iter().filter(|attempt| attempt.told == Some(outcome)).count();
        let (committed, aborted) = (told(Outcome::Commit), told(Outcome::Abort));
        [self.history.attempts.len(), committed, aborted, self.history.batches.len()]
    }

    /// Runs to the end. Panics where something does not hold.
    pub fn go(&mut self) {
        while self.turns < self.swarm.turns {
            let before = self.turns;
            self.step();
            if self.turns > before {
                if self.dice.once_in(self.swarm.trims) && self.world.broken.is_none() {
                    self.trim();
                }
                self.trouble();
            }
            self.mend();
        }
        self.calm_down();
        self.judge();
    }

    // ---- steps ----

    fn step(&mut self) {
        match self.dice.roll(8) {
            0..=3 => self.broker_step(),
            4 => {
                if let Some(exchange) = self.edge.arrived(self.now_ms) {
                    self.arrive(exchange);
                }
            }
            5 => self.client_step(),
            6 => {
                if let Some(answered) = self.edge.heard(self.now_ms) {
                    self.hear(&answered);
                }
            }
            _ => self.time_passes(),
        }
        self.collect();
        if self.dice.once_in(20) && !self.world.lost_power() && self.world.broken.is_none() {
            self.read();
        }
    }

    /// Whether somebody could go on without time going by.
    fn is_anything_now(&self) -> bool {
        let world = &self.world;
        let letters = !world.inbox.is_empty() || world.is_due() || world.rows.is_at() < world.written;
        let parts = world.parts.values().any(|entry| !entry.mail.is_empty() || entry.sync.is_some());
        letters || parts || self.edge.next_ms().is_some_and(|at| at <= self.now_ms)
    }

    fn broker_step(&mut self) {
        let world = &mut self.world;
        let due = !world.inbox.is_empty() || world.is_due();
        let mailed: Vec<PartId> =
            world.parts.iter().filter(|(_, entry)| !entry.mail.is_empty()).map(|(part, _)| *part).collect();
        let syncing: Vec<PartId> =
            world.parts.iter().filter(|(_, entry)| entry.sync.is_some()).map(|(part, _)| *part).collect();
        let behind = world.rows.is_at() < world.written;
        let mut choices: Vec<u8> = Vec::new();
        choices.extend(due.then_some(0));
        choices.extend((!mailed.is_empty()).then_some(1));
        // What is slow is seldom chosen, also when there is nothing else.
        if !syncing.is_empty() && (self.dice.once_in(self.swarm.slow_syncs)) {
            choices.push(2);
        }
        if behind && self.dice.once_in(self.swarm.slow_rows) {
            choices.push(3);
        }
        if choices.is_empty() {
            self.client_step();
            if self.dice.once_in(self.swarm.tidy) {
                self.world.tidy();
            }
            return;
        }
        self.turns += 1;
        match self.dice.pick(&choices) {
            0 => {
                let letters = 1 + self.dice.index(4);
                self.world.turn_ledger_with(letters);
            }
            1 => {
                let part = self.dice.pick(&mailed);
                self.world.turn_part(part);
            }
            2 => {
                let part = self.dice.pick(&syncing);
                self.world.sync_part(part);
            }
            _ => self.world.flush_rows(),
        }
    }

    fn time_passes(&mut self) {
        // With nothing else to do, time goes on to where there is; else a little, now and then.
        let ms = match self.edge.next_ms() {
            _ if self.dice.once_in(self.swarm.leap) => self.dice.ms(8_000),
            Some(at) if !self.is_anything_now() => (at - self.now_ms).clamp(1, 500),
            _ if !self.is_anything_now() => self.dice.ms(60),
            _ => self.dice.ms(4),
        };
        self.advance(ms);
    }

    fn advance(&mut self, ms: i64) {
        self.now_ms += ms;
        self.world.advance(ms);
    }

    /// A copy that comes when its client has begun another transaction under the same epoch came over a connection that
    /// the client has closed. The protocol has no defence against those: they are not delivered.
    fn is_stale(&self, exchange: &crate::edge::Exchange) -> bool {
        match (&exchange.request, exchange.attempt) {
            (Request::Produce { .. }, _) => false,
            (Request::Commit { offset, .. }, _) => {
                self.plains.iter().any(|plain| plain.who == exchange.who && plain.has_moved_on(offset.1))
            }
            (_, Some(attempt)) => {
                let own = &self.history.attempts[attempt];
                let later = &self.history.attempts[attempt + 1..];
                let same = |other: &crate::history::Attempt| other.producer == own.producer;
                let ends = matches!(exchange.request, Request::End { .. });
                // It asks for the end when all it asked before is answered: an add that comes later is a copy.
                let adds = matches!(exchange.request, Request::Add { .. } | Request::AddGroup { .. });
                let ended = own.told.is_some() || adds && own.asked.is_some();
                let over = ended && !ends && !self.history.is_fenced(&own.id, own.producer);
                over || later.iter().any(same)
            }
            (Request::Create { .. } | Request::Delete { .. }, None) => false,
            (_, None) => false,
        }
    }

    fn arrive(&mut self, mut exchange: crate::edge::Exchange) {
        if self.world.broken.is_some() || self.is_stale(&exchange) {
            return;
        }
        exchange.fenced = p4_fenced::is_fenced(&exchange.request, &self.history);
        exchange.open = match &exchange.request {
            Request::AbortTxn { id } => self.history.open(|attempt, _| attempt.id == *id),
            Request::Mark { producer, part, .. } => {
                self.history.open(|attempt, batch| attempt.producer == *producer && batch.part == *part)
            }
            _ => None,
        };
        self.edge.deliver(&mut self.world, exchange);
    }

    fn client_step(&mut self) {
        let parts = self.writable();
        let many = self.processes.len() + self.plains.len();
        // Whoever works in transactions is asked more often.
        let chosen = if self.dice.once_in(3) { self.dice.index(many) } else { self.dice.index(self.processes.len()) };
        let mut around = Around {
            now_ms: self.now_ms,
            edge: &mut self.edge,
            history: &mut self.history,
            swarm: &self.swarm,
            dice: &mut self.dice,
        };
        match self.processes.get_mut(chosen) {
            Some(process) => process.act(&mut around),
            None => {
                let world = &self.world;
                let plain = &mut self.plains[chosen - self.processes.len()];
                plain.forget(|part| !world.parts.contains_key(&part));
                plain.act(&parts, &mut around);
            }
        }
        self.succeed();
    }

    /// Partitions that clients without transactions write to.
    fn writable(&self) -> Vec<PartId> {
        let passing = PASSING.iter().filter_map(|name| self.world.catalog.topic(name));
        self.outputs.iter().copied().chain(passing.flat_map(|topic| topic.parts.clone())).collect()
    }

    /// Who is over is followed by another; now and then by another that comes too early.
    fn succeed(&mut self) {
        for (at, (id, group)) in IDS.into_iter().enumerate() {
            let early = self.dice.once_in(self.swarm.takeover.saturating_mul(4));
            if self.processes[at].dead || (early && self.processes.len() < IDS.len() + 4) {
                let next = self.process(id, group);
                let former = std::mem::replace(&mut self.processes[at], next);
                if !former.dead {
                    self.processes.push(former);
                }
            }
        }
        let mut place = 0;
        self.processes.retain(|process| {
            place += 1;
            place <= IDS.len() || !process.dead
        });
    }

    fn hear(&mut self, answered: &Answered) {
        let (who, number) = (answered.exchange.who, answered.exchange.number);
        let mut around = Around {
            now_ms: self.now_ms,
            edge: &mut self.edge,
            history: &mut self.history,
            swarm: &self.swarm,
            dice: &mut self.dice,
        };
        if let Some(process) = self.processes.iter_mut().find(|process| process.who == who) {
            process.hear(number, &answered.reply, &mut around);
        } else if let Some(plain) = self.plains.iter_mut().find(|plain| plain.who == who) {
            plain.hear(number, &answered.reply, &mut around);
        }
    }

    /// What the broker answered is a promise from now on, and on its way.
    fn collect(&mut self) {
        for answered in self.edge.collect(&mut self.world) {
            self.promise(&answered);
            self.edge.give_back(answered, self.now_ms, (&self.swarm, &mut self.dice));
        }
    }

    fn promise(&mut self, answered: &Answered) {
        p4_fenced::check(answered);
        let attempt = answered.exchange.attempt;
        match (&answered.exchange.request, &answered.reply) {
            (Request::Init { id, .. }, Reply::Producer(producer)) => match id {
                Some(id) => self.history.owner(id, *producer),
                None => self.history.owner(&format!("nobody {}", answered.exchange.number), *producer),
            },
            (Request::Produce { batch, .. }, Reply::Produced(at)) => {
                // A batch that its client did not wait for and that comes behind the end may be in the next one.
                let over = attempt.is_some_and(|attempt| self.history.attempts[attempt].told.is_some());
                if !over {
                    self.history.acked(*batch, *at);
                }
            }
            (Request::End { outcome, .. }, Reply::Done) => {
                if let Some(attempt) = attempt {
                    self.history.told(attempt, *outcome);
                }
            }
            (Request::AbortTxn { .. } | Request::Mark { .. }, Reply::Done) => {
                answered.exchange.open.into_iter().for_each(|attempt| self.history.aborted(attempt));
            }
            (Request::Position { group, part }, Reply::Position(Seen::At(position))) => {
                self.history.position(group, *part, position.offset);
            }
            (Request::Position { group, part }, Reply::Position(Seen::Absent)) => {
                let before = self.history.positions.get(&(group.clone(), *part));
                assert_eq!(before, None, "P1, P7: the offset of {group} is gone");
            }
            (Request::Commit { group, offset }, Reply::Done) => self.history.position(group, offset.0, offset.1),
            _ => {}
        }
    }

    /// Records leave: all that is decided and fills more than a little, or all below some offset.
    fn trim(&mut self) {
        let part = self.dice.pick(&self.outputs);
        let view = self.world.published(part);
        if view.availability != Availability::Open {
            return;
        }
        if self.dice.once_in(2) {
            let bytes = Some(200 + u64::try_from(self.dice.ms(3_000)).unwrap());
            self.world.retain(part, Retention { bytes, age_ms: None });
            return;
        }
        let some = self.dice.ms(view.watermark - view.log_start + 1);
        let letter = PartLetter::DeleteRecords { offset: view.log_start + some, to: self.world.reply() };
        self.world.deliver(Post::Part(part, letter));
    }

    fn read(&mut self) {
        let parts: Vec<PartId> = self.world.parts.keys().copied().collect();
        for part in parts {
            self.unseen.look(&self.world, part, &mut self.readers);
            self.readers.look(&self.world, part, &self.history);
        }
    }

    // ---- the end ----

    /// Nothing is wrong any more. Whoever is in the middle of something brings it to an end.
    fn calm_down(&mut self) {
        self.mend();
        self.world.disk.faults().lift();
        self.world.disk.power().on();
        let calm = Swarm { how: self.swarm.how, turns: 0, ..Swarm::calm() };
        self.swarm = calm;
        self.processes.iter_mut().for_each(|process| process.closing = true);
        let end_ms = self.now_ms + CALM_MS;
        while self.processes.iter().any(Process::is_busy) {
            let busy: Vec<&Process> = self.processes.iter().filter(|process| process.is_busy()).collect();
            assert!(self.now_ms < end_ms, "P6: stuck: {busy:?}");
            for _ in 0..30 {
                self.step();
                self.mend();
            }
            self.advance(5);
        }
        self.world.run_for(15_000);
        self.collect();
        let parts: Vec<PartId> = self.world.parts.keys().copied().collect();
        for part in parts {
            self.world.load(part);
        }
        self.world.run_for(1_000);
        self.collect();
        assert_eq!(self.world.broken, None, "P8: the process ends in the calm");
    }

    fn judge(&mut self) {
        self.read();
        p6_live::check(&self.world);
        let outputs = self.outputs.clone();
        for (id, _) in IDS {
            p6_live::still_works(&mut self.world, id, &outputs);
        }
        // What is paid is forgotten with the next commit, or a second later.
        self.world.run_for(2_000);
        p6_live::check(&self.world);
        let found = Found::read(&self.world);
        p5_once::check(&self.world, &self.history, &found);
        p2_atomic::check(&self.world, &self.history, &found);
        p1_durable::check(&self.world, &self.history, &found);
        p3_isolated::check(&self.world, &self.readers);
        for (group, input) in GROUPS.iter().zip(self.inputs.clone()) {
            end_to_end::check(&mut self.world, &self.history, &found, (group, input));
        }
        for ((group, part), at) in self.history.positions.clone() {
            let now = match self.world.offset(&group, part, true) {
                Seen::At(position) => position.offset,
                Seen::Absent | Seen::Unstable => -1,
            };
            assert!(now >= at, "P1: {group} was at {at} of {part:?} and is at {now}");
        }
        p6_live::nothing_stored(&mut self.world);
    }
}

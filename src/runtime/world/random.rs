//! Random histories: two ids, each with two processes that believe to own it (one of them may be a zombie), groups,
//! plain writers, kills and power cuts, no room here and there; every step at any moment.
//!
//! A client here does what a careful one does: one request at a time, a batch sent again until it is answered or its
//! transaction is given up. What it was told is compared with what readers find in the end.

#![expect(clippy::wildcard_enum_match_arm, reason = "any other refusal fails the test")]

use std::collections::BTreeMap;

use super::World;
use super::ask::{at, id};
use super::build::How;
use super::invariants::{Shown, all_at_rest, epochs, nothing_hangs, nothing_twice};
use super::store::Mood;
use crate::config::MarkerSync;
use crate::engine::ledger::offsets::Seen;
use crate::engine::log::Retention;
use crate::engine::{Offset, Outcome, PartId, Producer, Refusal, ReplyTo};
use crate::runtime::post::{Answer, Command, PartLetter, Post};
use crate::store::faults::{Fault, Operation, Rule};
use crate::store::mem_disk::Cut;

/// Numbers from a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.roll(u64::try_from(from.len()).unwrap())).unwrap()]
    }
}

/// What became of a transaction, as far as its client was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    Committed,
    Aborted,
}

/// One transaction of one client.
#[derive(Debug, Clone)]
struct Attempt {
    /// Producer, sequence, partition of each batch that was acknowledged, in all partitions, and its offset.
    acked: Vec<((Producer, i32, PartId), Offset)>,
    /// The offset it staged for its group, if that was acknowledged.
    staged: Option<(PartId, Offset)>,
    /// The outcome it has asked for; from then on it asks for no other.
    asked: Option<Outcome>,
    told: Told,
}

/// What a client waits for.
#[derive(Debug, Clone, Copy)]
enum Pending {
    Init,
    Add(PartId),
    AddGroup,
    Stage(PartId, Offset),
    Produce(PartId, i32),
    End(Outcome),
}

/// A process that believes to own an id.
struct Client {
    name: &'static str,
    producer: Option<Producer>,
    added: Vec<PartId>,
    group_added: bool,
    next: BTreeMap<PartId, i32>,
    pending: Option<(ReplyTo, Pending)>,
    /// A batch of unknown fate, to be sent again before anything else.
    again: Option<(PartId, i32)>,
    /// An end of unknown fate, to be asked for again.
    ending: Option<Outcome>,
    now: Attempt,
    past: Vec<Attempt>,
}

fn fresh() -> Attempt {
    Attempt { acked: Vec::new(), staged: None, asked: None, told: Told::Nothing }
}

impl Client {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            producer: None,
            added: Vec::new(),
            group_added: false,
            next: BTreeMap::new(),
            pending: None,
            again: None,
            ending: None,
            now: fresh(),
            past: Vec::new(),
        }
    }

    /// It gives up: begins anew as a new process would.
    fn restart(&mut self) {
        self.close(Told::Nothing);
        (self.producer, self.pending) = (None, None);
        self.next.clear();
    }

    fn close(&mut self, told: Told) {
        let attempt = std::mem::replace(&mut self.now, fresh());
        self.past.push(Attempt { told, ..attempt });
        self.added.clear();
        (self.group_added, self.again, self.ending) = (false, None, None);
    }

    fn act(&mut self, world: &mut World, dice: &mut Dice, parts: &[PartId]) {
        let Some(producer) = self.producer else {
            let to = world.ask_init(self.name, 3_000);
            self.pending = Some((to, Pending::Init));
            return;
        };
        if let Some(outcome) = self.ending {
            let to = world.ask_end(self.name, producer, outcome);
            self.pending = Some((to, Pending::End(outcome)));
            return;
        }
        if let Some((part, sequence)) = self.again {
            let to = world.ask_produce(self.name, (producer, sequence), part);
            self.pending = Some((to, Pending::Produce(part, sequence)));
            return;
        }
        let part = dice.pick(parts);
        self.pending = Some(match dice.roll(8) {
            0 if !self.added.is_empty() || self.group_added => {
                let outcome = if dice.roll(3) == 0 { Outcome::Abort } else { Outcome::Commit };
                (self.now.asked, self.ending) = (Some(outcome), Some(outcome));
                (world.ask_end(self.name, producer, outcome), Pending::End(outcome))
            }
            1 if self.group_added => {
                let offset = i64::try_from(dice.roll(1_000)).unwrap();
                let to = world.ask_stage(self.name, producer, self.name, (parts[0], offset));
                (to, Pending::Stage(parts[0], offset))
            }
            1 => (world.ask_add_group(self.name, producer, self.name), Pending::AddGroup),
            2..=6 if self.added.contains(&part) => {
                let sequence = self.next.get(&part).copied().unwrap_or(0);
                self.again = Some((part, sequence));
                (world.ask_produce(self.name, (producer, sequence), part), Pending::Produce(part, sequence))
            }
            _ => (world.ask_add(self.name, producer, &[part]), Pending::Add(part)),
        });
    }

    /// Takes its answer, if there is one.
    fn hear(&mut self, world: &mut World) {
        let Some((to, pending)) = self.pending else { return };
        let Some(answer) = world.answers.remove(&to) else { return };
        self.pending = None;
        let refusal = match (&answer, pending) {
            (Answer::Producer(producer), Pending::Init) => {
                self.producer = Some(*producer);
                return;
            }
            (Answer::Done, Pending::Add(part)) => return self.added.push(part),
            (Answer::Done, Pending::AddGroup) => return self.group_added = true,
            (Answer::Done, Pending::Stage(part, offset)) => return self.now.staged = Some((part, offset)),
            (Answer::Done, Pending::End(outcome)) => {
                let told = if outcome == Outcome::Commit { Told::Committed } else { Told::Aborted };
                return self.close(told);
            }
            (Answer::Produced(produced), Pending::Produce(part, sequence)) => {
                let batch = (self.producer.expect("a producer"), sequence, part);
                self.now.acked.push((batch, produced.base_offset));
                self.next.insert(part, sequence + 1);
                self.again = None;
                return;
            }
            (Answer::Unverified, Pending::Produce(..)) => {
                // The edge asks the ledger and sends the batch again; the next act sends it.
                let verified = world.ask_verify(self.name, self.producer.expect("a producer"), self.again.unwrap().0);
                self.pending = Some((verified, Pending::Add(self.again.unwrap().0)));
                return;
            }
            (Answer::Refused(refusal) | Answer::RefusedAt(refusal, _), _) => *refusal,
            (other, pending) => panic!("{pending:?}: {other:?}"),
        };
        match refusal {
            Refusal::ConcurrentTransactions | Refusal::NotCoordinator | Refusal::KafkaStorageError => {}
            Refusal::ProducerFenced
            | Refusal::InvalidProducerEpoch
            | Refusal::InvalidProducerIdMapping
            | Refusal::InvalidTxnState
            | Refusal::OutOfOrderSequence => self.restart(),
            other => panic!("{} is told {other:?} for {pending:?}: {:#?}", self.name, world.trace),
        }
    }
}

fn step(world: &mut World, dice: &mut Dice, parts: &[PartId]) {
    match dice.roll(12) {
        0..=3 => {
            let letters = usize::try_from(dice.roll(4)).unwrap() + 1;
            world.turn_ledger_with(letters);
        }
        4..=6 => world.turn_part(dice.pick(parts)),
        7..=8 => world.sync_part(dice.pick(parts)),
        9..=10 => world.flush_rows(),
        _ => world.advance(i64::try_from(dice.roll(40)).unwrap()),
    }
}

fn trouble(world: &mut World, dice: &mut Dice, parts: &[PartId]) -> bool {
    match dice.roll(900) {
        0 | 1 => world.kill_and_restart(),
        2..=4 => {
            let cut = dice.pick(&[Cut::LoseAll, Cut::LoseNothing, Cut::Seed(dice.0), Cut::Seed(!dice.0)]);
            let extra = usize::try_from(dice.roll(4)).unwrap();
            world.cut_and_restart(cut, extra);
        }
        5 => {
            let dir = world.log_dir(dice.pick(parts)).display().to_string();
            let times = Some(u32::try_from(dice.roll(3)).unwrap() + 1);
            let fault = dice.pick(&[Fault::NoSpace, Fault::Short(30)]);
            world.disk.faults().add(Rule { times, ..Rule::once(Operation::Write, &format!("{dir}/"), fault) });
            return false;
        }
        6 => {
            world.fake().set(dice.pick(&[Mood::Full, Mood::FullAbove(2)]));
            return false;
        }
        7..=30 => {
            world.fake().set(Mood::Well);
            return false;
        }
        _ => return false,
    }
    true
}

/// Whether records leave in a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Records {
    Stay,
    /// Segments are small, and go by size or because somebody asks.
    Leave,
}

fn let_go(world: &mut World, dice: &mut Dice, parts: &[PartId]) {
    let part = dice.pick(parts);
    let bytes = Some(dice.pick(&[0, 0, 300, 900]));
    let letter = match dice.roll(3) {
        0 => PartLetter::DeleteRecords { offset: i64::try_from(dice.roll(40)).unwrap() - 1, to: world.reply() },
        _ => PartLetter::Retain(Retention { age_ms: None, bytes }),
    };
    world.deliver(Post::Part(part, letter));
}

fn history(seed: u64, steps: u64, records: Records) {
    let mut dice = Dice(seed);
    let marker_sync = dice.pick(&[MarkerSync::Answer, MarkerSync::Redo]);
    let segment_bytes = if records == Records::Leave { 300 } else { How::default().segment_bytes };
    let mut world = World::new(How { marker_sync, segment_bytes, ..How::default() });
    let parts = world.topic("t", 3);
    let mut clients: Vec<Client> = ["a", "a", "b", "b"].map(Client::new).into();
    let mut shown = Shown::default();
    let mut plain = Vec::new();
    for n in 0..steps {
        step(&mut world, &mut dice, &parts);
        shown.look(&world);
        let at = usize::try_from(dice.roll(4)).unwrap();
        // The second process of an id comes seldom: it fences the first.
        let client = &mut clients[at];
        client.hear(&mut world);
        let rare = at % 2 == 1 && client.producer.is_none() && dice.roll(60) > 0;
        if client.pending.is_none() && !rare {
            client.act(&mut world, &mut dice, &parts);
        }
        if dice.roll(40) == 0 {
            plain.push((world.ask_plain(&format!("plain {n}"), dice.pick(&parts)), n));
        }
        if records == Records::Leave && dice.roll(25) == 0 {
            let_go(&mut world, &mut dice, &parts);
        }
        if trouble(&mut world, &mut dice, &parts) {
            world.fake().set(Mood::Well);
            // Connections are gone; each client asks again for what it does not know the fate of.
            clients.iter_mut().for_each(|client| client.pending = None);
            nothing_hangs(&world);
        }
    }
    settle(&mut world, &mut clients);
    judge(&mut world, &clients, &parts);
}

/// Nobody begins anything more; ends are asked for again until they are known; timeouts do the rest.
fn settle(world: &mut World, clients: &mut [Client]) {
    world.fake().set(Mood::Well);
    world.disk.faults().lift();
    for _ in 0..20 {
        world.run_for(600);
        for client in clients.iter_mut() {
            client.hear(world);
            if let (None, Some(outcome), Some(producer)) = (client.pending, client.ending, client.producer) {
                let to = world.ask_end(client.name, producer, outcome);
                client.pending = Some((to, Pending::End(outcome)));
            }
        }
    }
    world.run_for(10_000);
    for client in clients.iter_mut() {
        client.hear(world);
        client.close(Told::Nothing);
    }
}

fn judge(world: &mut World, clients: &[Client], parts: &[PartId]) {
    nothing_hangs(world);
    all_at_rest(world);
    let mut visible: BTreeMap<(Producer, i32, PartId), usize> = BTreeMap::new();
    for part in parts {
        world.load(*part);
        nothing_twice(world, *part);
        for found in world.read_committed(*part) {
            if let Some(producer) = found.header.producer() {
                *visible.entry((producer, found.header.base_sequence, *part)).or_default() += 1;
            }
        }
    }
    for attempt in clients.iter().flat_map(|client| &client.past) {
        // Of what lies below a log start nothing can be said.
        let there = attempt.acked.iter().filter(|((_, _, part), offset)| *offset >= world.published(*part).log_start);
        let seen: Vec<usize> = there.map(|(batch, _)| visible.get(batch).copied().unwrap_or(0)).collect();
        let all = seen.iter().all(|n| *n == 1);
        let none = seen.iter().all(|n| *n == 0);
        let context = || (attempt, parts.iter().map(|part| epochs(world, *part)).collect::<Vec<_>>(), &world.trace);
        match attempt.told {
            Told::Committed => assert!(all, "P1, P2: told committed, seen {seen:?}: {:#?}", context()),
            Told::Aborted => assert!(none, "P3: told aborted, seen {seen:?}: {:#?}", context()),
            Told::Nothing => assert!(all || none, "P2: seen {seen:?}: {:#?}", context()),
        }
        if attempt.told == Told::Nothing && attempt.asked != Some(Outcome::Commit) {
            assert!(none, "nobody asked for a commit, seen {seen:?}: {:#?}", context());
        }
    }
    for name in ["a", "b"] {
        offsets_agree(world, clients, name, parts[0]);
    }
}

/// The committed offset is one that a transaction carried which may have been committed.
fn offsets_agree(world: &mut World, clients: &[Client], name: &str, part: PartId) {
    let seen = world.offset(name, part, true);
    let carried = |told: &[Told]| -> Vec<Offset> {
        let own = clients.iter().filter(|client| client.name == name).flat_map(|client| &client.past);
        let known = own.filter(|attempt| told.contains(&attempt.told) && attempt.asked == Some(Outcome::Commit));
        known.filter_map(|attempt| Some(attempt.staged?.1)).collect()
    };
    let possible = carried(&[Told::Committed, Told::Nothing]);
    match seen {
        Seen::Absent => assert!(carried(&[Told::Committed]).is_empty(), "P1: the offset of {name} is lost"),
        Seen::At(position) => {
            let unacked = clients.iter().any(|client| client.name == name);
            assert!(possible.iter().any(|offset| at(*offset) == position) || unacked, "{name}: {position:?}");
        }
        Seen::Unstable => panic!("{name} stays unstable: {}", id(name)),
    }
    let to = world.ask(Command::ListTxns);
    world.run_to_rest();
    world.answer(to);
}

fn histories(records: Records, least: u64) {
    let first: u64 = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let count: u64 = std::env::var("SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(least);
    for seed in first..first + count {
        println!("seed {seed}");
        history(seed, 1_500, records);
    }
}

#[test]
fn random_histories() {
    histories(Records::Stay, 60);
}

#[test]
fn random_histories_in_which_records_leave() {
    histories(Records::Leave, 30);
}

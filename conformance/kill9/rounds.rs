//! Round after round: work, a fault, work, rest, check.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::child::now;
use crate::clients::{GROUP, INPUTS, Line, Run};
use crate::dice::Dice;
use crate::fault::Fault;
use crate::history::{Kind, Part, Rest, Topic, View, What};
use crate::process::{Broker, Failed};
use crate::raw::batch::Batch;
use crate::raw::data::{Appended, produce_request};
use crate::readers::{Asker, parts};

/// How long clients may take to come to an outcome. Longer than any of them has patience with a call.
const OUTCOME: Duration = Duration::from_secs(25);
/// How long transactions may take to end by their timeout, markers and all.
const AT_REST: Duration = Duration::from_secs(10);
const GLANCE: Duration = Duration::from_millis(10);

/// How the loop is run.
pub(crate) struct Plan {
    pub(crate) rounds: u32,
    /// How long clients work in a round; the fault and the rest after it come on top.
    pub(crate) work: Duration,
    /// Where the data is, and whether it may be filled.
    pub(crate) volume: PathBuf,
    pub(crate) can_fill: bool,
    pub(crate) clients: Vec<String>,
}

/// The one who drives.
pub(crate) struct Rounds<'a> {
    run: &'a Run,
    plan: &'a Plan,
    broker: Broker,
    dice: Dice,
    asker: Asker<'a>,
    /// Up to where everything has been checked.
    checked: BTreeMap<Part, i64>,
}

impl<'a> Rounds<'a> {
    pub(crate) fn new(run: &'a Run, plan: &'a Plan, broker: Broker) -> Self {
        let (dice, asker) = (Dice::new(run.seed, 1 << 42), Asker::new(run));
        Self { run, plan, broker, dice, asker, checked: BTreeMap::new() }
    }

    /// All rounds, up to the first in which something is wrong. Gives how many were done.
    pub(crate) fn drive(&mut self) -> u32 {
        for round in 1..=self.plan.rounds {
            let began = now();
            let fault = Fault::of(round, self.plan.can_fill);
            self.run.history.lock().enter_round(round);
            if let Err(failed) = self.round(fault) {
                self.run.history.lock().wrong(What::Broker, None, failed.to_string());
            }
            self.say(round, fault, began.elapsed());
            if !self.run.history.lock().anomalies().is_empty() {
                return round;
            }
        }
        if let Err(failed) = self.once_more() {
            self.run.history.lock().wrong(What::Broker, None, failed.to_string());
        }
        self.plan.rounds
    }

    fn say(&self, round: u32, fault: Fault, took: Duration) {
        let history = self.run.history.lock();
        let (count, wrong) = (history.count(), history.anomalies().len());
        eprintln!(
            "round {round:>3}  {fault:<20} {:>4.1} s  starts {:<4} so far: transactions {} committed {} aborted {} \
             records {} anomalies {wrong}",
            took.as_secs_f32(),
            self.broker.starts(),
            count.transactions,
            count.committed,
            count.aborted,
            count.records
        );
    }

    fn round(&mut self, fault: Fault) -> Result<(), Failed> {
        self.run.refuses.store(fault.refuses(), Ordering::Release);
        self.run.gate.open();
        let before = self.plan.work.mul_f64(0.3 + f64::from(self.dice.roll(400)) / 1_000.0);
        std::thread::sleep(before);
        self.broker.runs()?;
        let mut probe = || probe(self.run);
        fault.strike(&mut self.broker, &mut self.dice, (&self.plan.volume, &mut probe))?;
        std::thread::sleep(self.plan.work.saturating_sub(before));
        self.rest(AT_REST)
    }

    /// Everybody stops, everything ends; then it is read and checked.
    fn rest(&mut self, at_rest: Duration) -> Result<(), Failed> {
        let busy = self.run.gate.shut(OUTCOME);
        self.broker.runs()?;
        if !busy.is_empty() {
            let detail = format!("without an outcome within {OUTCOME:?}: {}", busy.join(", "));
            self.run.history.lock().wrong(What::Stuck, None, detail);
            return Ok(());
        }
        let mut rest = self.settle(at_rest)?;
        for (part, stable, watermark) in &rest.ends {
            let from = self.checked.insert(*part, *stable).unwrap_or(0);
            // A partition that is being opened, or was read anew, asks its reader to come again.
            let read = (0..40).any(|tries| {
                std::thread::sleep(Duration::from_millis(if tries == 0 { 0 } else { 250 }));
                self.asker.read(View::Uncommitted, *part, (from, *watermark))
                    && self.asker.read(View::Committed, *part, (from, *stable))
            });
            if !read {
                return Err(Failed::new(&format!("{part} cannot be read")));
            }
        }
        rest.processors = (GROUP.to_owned(), BTreeMap::new());
        for number in 0..INPUTS {
            let stands = patiently("a group's offset", || self.asker.group(GROUP, number))?;
            rest.processors.1.insert(number, stands);
        }
        for name in self.plan.clients.iter().filter(|name| name.starts_with("raw")) {
            let stands = patiently("a client's own offset", || self.asker.group(name, 0))?;
            rest.own.insert(name.clone(), stands);
        }
        let began = now();
        while !self.run.history.lock().not_consumed().is_empty() && began.elapsed() < AT_REST {
            std::thread::sleep(GLANCE);
        }
        self.run.history.lock().check(&rest);
        Ok(())
    }

    /// Waits until no transaction is open and none holds a last stable offset back, and says how it stands then.
    fn settle(&mut self, at_most: Duration) -> Result<Rest, Failed> {
        let began = now();
        loop {
            let mut ends = Vec::new();
            for part in parts() {
                let asker = &mut self.asker;
                let stable = patiently("a last stable offset", || asker.end(part, View::Committed))?;
                let watermark = patiently("a watermark", || asker.end(part, View::Uncommitted))?;
                ends.push((part, stable, watermark));
            }
            let open = patiently("the transactions", || self.asker.open())?;
            let settled = open.is_empty() && ends.iter().all(|(_, stable, watermark)| stable == watermark);
            if settled || began.elapsed() > at_most {
                return Ok(Rest { ends, open, ..Rest::default() });
            }
            std::thread::sleep(GLANCE);
        }
    }

    /// After a clean end and one more start everything is as it was, from the first record on.
    fn once_more(&mut self) -> Result<(), Failed> {
        self.broker.terminate()?;
        self.broker.spawn();
        self.broker.serves()?;
        self.checked.clear();
        self.rest(AT_REST)?;
        self.broker.terminate()
    }

    /// Ends the process, whatever it does.
    pub(crate) fn end(&mut self) {
        self.broker.kill();
    }
}

fn patiently<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> Result<T, Failed> {
    let began = now();
    loop {
        if let Some(answer) = ask() {
            return Ok(answer);
        }
        if began.elapsed() > AT_REST {
            return Err(Failed::new(&format!("{what} cannot be had within {AT_REST:?}")));
        }
        std::thread::sleep(GLANCE);
    }
}

/// With no room on the disk: what a plain batch is told. To be refused for good would be wrong.
fn probe(run: &Run) {
    let mut line = Line::new(run, run.broker, "probe");
    let mut told: BTreeMap<i16, u32> = BTreeMap::new();
    for number in 0..5 {
        let part = Part { topic: Topic::Out, number };
        let mut history = run.history.lock();
        let attempt = history.begin("probe", Kind::Plain);
        let value = history.write(attempt, part, None);
        drop(history);
        let mut batch = Batch::plain(0);
        // More than what an open segment's last block has room for.
        batch.records = vec![(None, Some(format!("{value} {}", "x".repeat(20_000)).into_bytes()))];
        let request = produce_request(part.topic.name(), part.number, None, batch.bytes());
        let Some(answer) = line.ask(9, &request) else { continue };
        let appended = Appended::of(&answer);
        *told.entry(appended.code).or_default() += 1;
        let mut history = run.history.lock();
        if appended.code == 0 {
            history.acknowledged(value, Some(appended.base_offset));
        } else if !crate::clients::PASSING.contains(&appended.code) {
            history.wrong(What::Broker, Some(value), format!("without room, code {}", appended.code));
        }
    }
    eprintln!("           without room a plain batch is told (code: times) {told:?}");
}

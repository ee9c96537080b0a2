//! `oncelog-sim`: runs the simulator for some time, for one seed, or with a known bug put back.
//!
//! Where a panic ends the process, as in the release profile, the seeds are run in a process of their own: it is started
//! again after each violation.

#![expect(clippy::disallowed_methods, reason = "how long it may take is asked of the real clock; no run sees it")]

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use oncelog_sim::known_bugs::{ALL, Bug};
use oncelog_sim::seeds::{Verdict, run};

/// What was asked for.
#[derive(Clone)]
struct Asked {
    seconds: u64,
    seed: Option<u64>,
    first: u64,
    bug: Option<(Bug, &'static str)>,
    /// This process runs seeds for another, and says how each went.
    worker: bool,
}

/// All runs together.
#[derive(Default)]
struct Sum {
    seeds: u64,
    turns: u64,
    violations: u64,
    counts: [usize; 4],
}

const USAGE: &str = "usage: oncelog-sim [--seconds S] [--seed N] [--from N] [--mutant NAME] | --list-mutants";
/// Violations after which it is enough.
const ENOUGH: u64 = 10;
/// Lines of a run's trace that are printed.
const TRACED: usize = 3_000;
/// What a worker's line about a seed begins with.
const DONE: &str = "done";

fn main() -> ExitCode {
    match asked() {
        Ok(Some(asked)) if asked.worker => work(&asked),
        Ok(Some(asked)) => go(&asked),
        Ok(None) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn asked() -> Result<Option<Asked>, String> {
    let fresh = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |since| since.as_secs());
    let mut asked = Asked { seconds: 60, seed: None, first: fresh << 20, bug: None, worker: false };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || -> Result<u64, String> {
            let value = words.next().ok_or(format!("{word} wants a number"))?;
            value.parse().map_err(|_| format!("{word} wants a number, not {value}"))
        };
        match word.as_str() {
            "--list-mutants" => {
                for (_, name) in ALL {
                    println!("{name}");
                }
                return Ok(None);
            }
            "--seconds" => asked.seconds = number()?,
            "--seed" => asked.seed = Some(number()?),
            "--from" => asked.first = number()?,
            "--worker" => asked.worker = true,
            "--mutant" => {
                let name = words.next().ok_or("--mutant wants a name")?;
                let found = ALL.iter().find(|(_, known)| *known == name);
                asked.bug = Some(*found.ok_or(format!("no mutant is called {name}"))?);
            }
            other => return Err(format!("{other} is not understood")),
        }
    }
    Ok(Some(asked))
}

fn go(asked: &Asked) -> ExitCode {
    let began = Instant::now();
    let mut sum = Sum::default();
    println!("from seed {}", asked.seed.unwrap_or(asked.first));
    if cfg!(panic = "abort") {
        if let Err(error) = with_workers(asked, &mut sum) {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    } else {
        in_this_process(asked, &mut sum);
    }
    let rate = sum.turns as f64 / began.elapsed().as_secs_f64().max(0.001);
    let [attempts, committed, aborted, batches] = sum.counts;
    println!(
        "{rate:.0} turns per second; attempts {attempts}, committed {committed}, aborted {aborted}; batches {batches}"
    );
    println!("seeds {} turns {} violations {}", sum.seeds, sum.turns, sum.violations);
    if sum.violations == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

impl Sum {
    fn is_enough(&self, asked: &Asked, began: Instant) -> bool {
        let seen = asked.bug.is_some() && self.violations > 0;
        let late = began.elapsed() >= Duration::from_secs(asked.seconds);
        asked.seed.is_some() && self.seeds > 0 || seen || self.violations >= ENOUGH || late
    }

    fn add(&mut self, turns: u64, counts: [usize; 4]) {
        self.seeds += 1;
        self.turns += turns;
        self.counts.iter_mut().zip(counts).for_each(|(all, one)| *all += one);
    }
}

fn in_this_process(asked: &Asked, sum: &mut Sum) {
    let began = Instant::now();
    let mut seed = asked.seed.unwrap_or(asked.first);
    while !sum.is_enough(asked, began) {
        let verdict = run(seed, asked.bug.map(|(bug, _)| bug), asked.seed.is_some());
        sum.add(verdict.turns, verdict.counts);
        if verdict.violation.is_some() {
            sum.violations += 1;
            report(&verdict);
        }
        seed = seed.wrapping_add(1);
    }
}

/// Runs seeds until the time is over, or until one ends the process.
fn work(asked: &Asked) -> ExitCode {
    let began = Instant::now();
    let mut sum = Sum::default();
    let mut seed = asked.seed.unwrap_or(asked.first);
    while !sum.is_enough(asked, began) {
        let verdict = run(seed, asked.bug.map(|(bug, _)| bug), false);
        sum.add(verdict.turns, verdict.counts);
        let [attempts, committed, aborted, batches] = verdict.counts;
        println!("{DONE} {} {attempts} {committed} {aborted} {batches}", verdict.turns);
        seed = seed.wrapping_add(1);
    }
    ExitCode::SUCCESS
}

fn with_workers(asked: &Asked, sum: &mut Sum) -> std::io::Result<()> {
    let began = Instant::now();
    let first = asked.seed.unwrap_or(asked.first);
    while !sum.is_enough(asked, began) {
        let left = asked.seconds.saturating_sub(began.elapsed().as_secs()).max(1);
        let seed = first.wrapping_add(sum.seeds).to_string();
        let mut worker = Command::new(std::env::current_exe()?);
        worker.args(["--worker", if asked.seed.is_some() { "--seed" } else { "--from" }, seed.as_str()]);
        worker.args(["--seconds", left.to_string().as_str()]);
        if let Some((_, name)) = asked.bug {
            worker.args(["--mutant", name]);
        }
        let mut worker = worker.stdout(Stdio::piped()).spawn()?;
        let said = worker.stdout.take().map(|out| follow(BufReader::new(out), sum)).transpose()?.unwrap_or_default();
        if !worker.wait()?.success() {
            println!("seed {}: {said}", first.wrapping_add(sum.seeds));
            println!("what led to it: cargo run -p oncelog-sim -- --seed {}", first.wrapping_add(sum.seeds));
            sum.violations += 1;
            sum.add(0, [0; 4]);
        }
    }
    Ok(())
}

/// Takes in what a worker says. Gives its last words, if they were no seed's.
fn follow(lines: impl BufRead, sum: &mut Sum) -> std::io::Result<String> {
    let mut last = Vec::new();
    for line in lines.lines() {
        let line = line?;
        match line.strip_prefix(DONE) {
            Some(figures) => {
                let figures: Vec<u64> = figures.split_whitespace().filter_map(|word| word.parse().ok()).collect();
                let at = |n: usize| figures.get(n).copied().unwrap_or(0);
                let count = |n: usize| usize::try_from(at(n)).unwrap_or(0);
                sum.add(at(0), [count(1), count(2), count(3), count(4)]);
                last.clear();
            }
            None => last.push(line),
        }
    }
    Ok(last.join("\n"))
}

fn report(verdict: &Verdict) {
    let last = verdict.trace.len().saturating_sub(TRACED);
    for line in &verdict.trace[last..] {
        println!("  {line}");
    }
    println!("seed {}: {}", verdict.seed, verdict.violation.as_deref().unwrap_or_default());
}

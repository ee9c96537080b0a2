//! `oncelog-sim`: runs the simulator for some time, for one seed, or with a known bug put back.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use oncelog_sim::known_bugs::{ALL, Bug};
use oncelog_sim::seeds::{Verdict, run};

/// What was asked for.
struct Asked {
    seconds: u64,
    seed: Option<u64>,
    first: u64,
    bug: Option<Bug>,
}

const USAGE: &str = "usage: oncelog-sim [--seconds S] [--seed N] [--from N] [--mutant NAME] | --list-mutants";

fn main() -> ExitCode {
    match asked() {
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
    let mut asked = Asked { seconds: 60, seed: None, first: fresh << 20, bug: None };
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
            "--mutant" => {
                let name = words.next().ok_or("--mutant wants a name")?;
                let found = ALL.iter().find(|(_, known)| *known == name);
                asked.bug = Some(found.ok_or(format!("no mutant is called {name}"))?.0);
            }
            other => return Err(format!("{other} is not understood")),
        }
    }
    Ok(Some(asked))
}

fn go(asked: &Asked) -> ExitCode {
    let began = Instant::now();
    let limit = Duration::from_secs(asked.seconds);
    let (mut seeds, mut turns, mut violations) = (0_u64, 0_u64, 0_u64);
    let mut counts = [0; 4];
    let mut seed = asked.seed.unwrap_or(asked.first);
    println!("from seed {seed}");
    loop {
        let verdict = run(seed, asked.bug, asked.seed.is_some());
        counts.iter_mut().zip(verdict.counts).for_each(|(all, one)| *all += one);
        (seeds, turns) = (seeds + 1, turns + verdict.turns);
        if verdict.violation.is_some() {
            violations += 1;
            report(&verdict);
        }
        let enough = asked.bug.is_some() && violations > 0;
        if asked.seed.is_some() || enough || violations >= 10 || began.elapsed() >= limit {
            break;
        }
        seed = seed.wrapping_add(1);
    }
    let rate = turns as f64 / began.elapsed().as_secs_f64().max(0.001);
    let [attempts, committed, aborted, batches] = counts;
    println!(
        "{rate:.0} turns per second; attempts {attempts}, committed {committed}, aborted {aborted}; batches {batches}"
    );
    println!("seeds {seeds} turns {turns} violations {violations}");
    if violations == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

/// Lines of a run's trace that are printed.
const TRACED: usize = 3_000;

fn report(verdict: &Verdict) {
    let last = verdict.trace.len().saturating_sub(TRACED);
    for line in &verdict.trace[last..] {
        println!("  {line}");
    }
    println!("seed {}: {}", verdict.seed, verdict.violation.as_deref().unwrap_or_default());
}

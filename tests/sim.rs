//! The simulator, for a minute: every seed that once found something, then fresh ones; the known bugs; every write point.

#![expect(clippy::disallowed_methods, reason = "how long it may take is asked of the real clock; no run sees it")]

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{available_parallelism, scope};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use oncelog_sim::known_bugs::ALL;
use oncelog_sim::points::{self, Breadth};
use oncelog_sim::seeds::{KEPT, Verdict, run};

/// How long fresh seeds are run; `SIM_SECONDS` says otherwise.
const SECONDS: u64 = 60;
/// Seeds within which each known bug must be seen.
const SEEN_WITHIN: u64 = 1_000;

fn threads() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// Said past the test's own output, which is shown only of tests that fail.
fn say(line: &str) {
    let said = std::io::stderr().write_all(format!("{line}\n").as_bytes());
    assert!(said.is_ok(), "{said:?}");
}

/// What did not hold, with the way to see it again.
fn shown(verdict: &Verdict) -> Option<String> {
    let violation = verdict.violation.as_ref()?;
    Some(format!("seed {}: {violation}\ncargo run -p oncelog-sim -- --seed {}", verdict.seed, verdict.seed))
}

#[test]
fn kept_seeds_then_fresh_ones() {
    let seconds = std::env::var("SIM_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SECONDS);
    let kept: Vec<u64> = KEPT.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect();
    assert!(!kept.is_empty(), "the list of kept seeds can be read");
    let first = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs()) << 20;
    say(&format!("{} kept seeds, then fresh ones from {first}", kept.len()));
    let (next, turns, found) = (AtomicU64::new(0), AtomicU64::new(0), Mutex::new(Vec::new()));
    let began = SystemTime::now();
    let in_time = || began.elapsed().is_ok_and(|spent| spent < Duration::from_secs(seconds));
    let seed = || {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let old = usize::try_from(at).ok().and_then(|at| kept.get(at)).copied();
        old.or_else(|| in_time().then(|| first.wrapping_add(at)))
    };
    let work = || {
        while let Some(seed) = seed() {
            let verdict = run(seed, None, false);
            turns.fetch_add(verdict.turns, Ordering::Relaxed);
            found.lock().unwrap().extend(shown(&verdict));
        }
    };
    scope(|scope| {
        for _ in 0..threads() {
            scope.spawn(work);
        }
    });
    let found = found.into_inner().unwrap();
    say(&format!("seeds {} turns {} violations {}", next.into_inner(), turns.into_inner(), found.len()));
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

/// A simulator that sees nothing proves nothing.
#[test]
fn every_known_bug_is_seen() {
    for (bug, name) in ALL {
        let seen = (1..=SEEN_WITHIN).find(|seed| run(*seed, Some(bug), false).violation.is_some());
        say(&format!("{name}: seed {seen:?}"));
        assert!(seen.is_some(), "{name} is put back and not seen within {SEEN_WITHIN} seeds");
    }
}

/// One seed is one run: the same happens again, word for word.
#[test]
fn a_seed_repeats_itself() {
    for seed in 1..=12 {
        let (once, again) = (run(seed, None, true), run(seed, None, true));
        assert!(once.trace.len() > 100, "seed {seed} does something");
        assert_eq!((once.turns, once.counts, once.violation), (again.turns, again.counts, again.violation));
        let differs = once.trace.iter().zip(&again.trace).find(|(one, two)| one != two);
        assert_eq!((once.trace.len(), differs), (again.trace.len(), None), "seed {seed}");
    }
}

/// A full disk, a failing one, a kill and a power cut at every change that a transaction asks a disk for.
#[test]
fn every_write_point() {
    let report = points::run(Breadth::Test, threads(), None);
    say(&format!("{} points: {:?}; known weaknesses met: {:?}", report.points, report.changes, report.known));
    assert!(report.findings.is_empty(), "{}", report.findings.join("\n\n"));
}

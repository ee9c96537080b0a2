//! Many runs: what became of each, and what of all.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use crate::known_bugs::{Bug, put_in};
use crate::run::Run;

/// Seeds that once found something, each with what it was.
pub const KEPT: &str = include_str!("../seeds.txt");

/// What became of one seed.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// The seed.
    pub seed: u64,
    /// Steps taken.
    pub turns: u64,
    /// Attempts, those told committed, those told aborted; batches.
    pub counts: [usize; 4],
    /// What did not hold, if something did not.
    pub violation: Option<String>,
    /// What happened last, where it was written down.
    pub trace: Vec<String>,
}

thread_local! {
    static RUNS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    static SAID: std::cell::RefCell<Option<String>> = const { std::cell::RefCell::new(None) };
}

/// Keeps what panics of runs say, instead of printing it. Other panics are none of its business.
fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| {
            if !RUNS.with(std::cell::Cell::get) {
                return others(panic);
            }
            if cfg!(panic = "abort") {
                // Nothing comes after this: whoever started the process reads it.
                println!("{panic}");
                return;
            }
            SAID.with(|said| {
                // The first word counts: what unwinding meets afterwards follows from it.
                said.borrow_mut().get_or_insert_with(|| panic.to_string());
            });
        }));
    });
}

/// Runs one seed, with a bug put back or without.
#[must_use]
pub fn run(seed: u64, bug: Option<Bug>, tracing: bool) -> Verdict {
    listen();
    SAID.with(|said| *said.borrow_mut() = None);
    put_in(bug);
    RUNS.with(|runs| runs.set(true));
    let mut run = None;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let run = run.insert(Run::new(seed, tracing));
        run.go();
    }));
    RUNS.with(|runs| runs.set(false));
    put_in(None);
    let said = SAID.with(|said| said.borrow_mut().take());
    let violation = outcome.err().map(|_| said.unwrap_or_else(|| "it ended without a word".to_owned()));
    let counts = run.as_ref().map_or([0; 4], Run::counts);
    let (turns, trace) = run.map_or((0, Vec::new()), |run| (run.turns, run.world.trace));
    Verdict { seed, turns, counts, violation, trace }
}

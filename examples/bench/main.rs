//! Figures of the broker as a process: how soon it serves, how much memory it takes, how fast transactions end. Prints,
//! and asserts nothing. What is measured is a client's view over loopback.
//!
//! usage: bench [PROGRAM]
//!        bench recovery [--gigabytes N] [--partitions N] [--transactional PERCENT] [PROGRAM]
//!                                        fills a directory, kills the broker under load, and measures the next starts
//!        bench recovery-ids [--ids N] [PROGRAM]   the same with many transactional ids
//!        bench --fill DATA_DIR PROGRAM   writes batches of every kind into a directory, and measures nothing
//!
//! PROGRAM is the broker that `cargo build --release` has built. Directories are made in `TMPDIR`, which should be on a
//! real disk.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on has failed")]
#![expect(clippy::indexing_slicing, reason = "a measurement that finds less than it asked for has failed")]

#[path = "../../tests/it/process/child.rs"]
#[allow(dead_code, reason = "all that can be done with a broker's process, whichever of it is done")]
mod child;
mod figures;
mod fill;
#[path = "../../tests/it/raw/mod.rs"]
#[allow(dead_code, reason = "all that can be asked of a broker, whichever of it is asked")]
mod raw;
mod recovery;
mod recovery_ids;
mod restart;
mod starts;
mod transactions;

use std::path::PathBuf;

fn main() {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/target/release/oncelog");
    let mut words: Vec<_> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let data = (words.len() == 3 && words[0].as_os_str() == "--fill").then(|| words.remove(1));
    let mode = words.first().and_then(|word| word.to_str()).and_then(Mode::of);
    let fill = recovery::Fill {
        gigabytes: number(&mut words, "--gigabytes", 10),
        partitions: number(&mut words, "--partitions", 100),
        transactional_percent: number(&mut words, "--transactional", 25),
    };
    let ids = number(&mut words, "--ids", 100_000);
    let program = words.pop().filter(|word| word.to_str().and_then(Mode::of).is_none());
    let program = program.unwrap_or_else(|| built().unwrap_or_else(|| PathBuf::from(default)));
    let program = program.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    if let Some(data) = data {
        return fill::fill(&program, &data);
    }
    figures::heading(&format!("{} {}", program.display(), figures::machine()));
    match mode {
        Some(Mode::Recovery) => return recovery::run(&program, fill),
        Some(Mode::RecoveryIds) => return recovery_ids::run(&program, ids),
        None => {}
    }
    starts::empty(&program);
    starts::with_partitions(&program, 1_000);
    transactions::visibility(&program);
    for producers in [1, 16] {
        transactions::rate(&program, producers);
    }
}

/// What is measured, where it is not everything that is quickly done.
#[derive(Debug, Clone, Copy)]
enum Mode {
    Recovery,
    RecoveryIds,
}

impl Mode {
    fn of(word: &str) -> Option<Self> {
        match word {
            "recovery" => Some(Self::Recovery),
            "recovery-ids" => Some(Self::RecoveryIds),
            _ => None,
        }
    }
}

/// Takes an option and its number out of the words.
fn number<T: std::str::FromStr>(words: &mut Vec<PathBuf>, option: &str, default: T) -> T {
    let Some(at) = words.iter().position(|word| word.as_os_str() == option) else { return default };
    let value = words.get(at + 1).and_then(|word| word.to_str()?.parse().ok());
    words.drain(at..(at + 2).min(words.len()));
    value.unwrap_or_else(|| panic!("{option} wants a number"))
}

/// The broker that was built together with this program.
fn built() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?.parent()?.parent()?.join("oncelog");
    program.exists().then_some(program)
}

//! Figures of the broker as a process: how soon it serves, how much memory it takes, how fast transactions end. Prints,
//! and asserts nothing. What is measured is a client's view over loopback.
//!
//! usage: bench [PROGRAM]
//!        bench --fill DATA_DIR PROGRAM   writes batches of every kind into a directory, and measures nothing

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
mod starts;
mod transactions;

use std::path::PathBuf;

fn main() {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/target/release/oncelog");
    let mut words: Vec<_> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let data = (words.len() == 3 && words[0].as_os_str() == "--fill").then(|| words.remove(1));
    let program = words.pop().unwrap_or_else(|| PathBuf::from(default));
    let program = program.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    if let Some(data) = data {
        return fill::fill(&program, &data);
    }
    figures::heading(&format!("{} {}", program.display(), figures::machine()));
    starts::empty(&program);
    starts::with_partitions(&program, 1_000);
    transactions::visibility(&program);
    for producers in [1, 16] {
        transactions::rate(&program, producers);
    }
}

//! The broker as a process of its own: started, killed, told to stop, and started again on what it left behind.

pub(crate) mod child;

mod bad_starts;
mod exactly_once;
mod kcat;
pub(crate) mod librdkafka;
mod oracle;
mod stop;
mod sync_failure;

use std::path::Path;
use std::process::Command;

use child::Server;

/// The program that is tested.
const PROGRAM: &str = env!("CARGO_BIN_EXE_oncelog");

/// The program, told nothing yet.
pub(crate) fn oncelog(dir: &Path) -> Command {
    child::quiet(Path::new(PROGRAM), dir)
}

/// The program as a broker on a directory of its own.
pub(crate) fn serve(settings: &[&str]) -> Server {
    Server::of(Path::new(PROGRAM), settings)
}

/// The same, with these variables in its environment.
pub(crate) fn serve_among(settings: &[&str], variables: &[(&str, &str)]) -> Server {
    Server::among(Path::new(PROGRAM), settings, variables)
}

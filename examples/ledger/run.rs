//! The outer loop: a session works until its producer is of no more use, then another one takes its place.

use std::thread::sleep;
use std::time::Duration;

use crate::Failure;
use crate::outcome::Stop;
use crate::session::Session;

/// Times that this instance may lose its id in a row, without a transaction committed between: then another process
/// has the same `--instance`, and going on would only take it back and forth.
const FENCED_MAX: u32 = 5;

/// What `run` may be told.
pub(crate) struct Options {
    /// This instance's number.
    pub(crate) instance: u32,
    /// Most payments of one transaction.
    pub(crate) batch: usize,
    /// Each of how many transactions is aborted on purpose; 0 for none.
    pub(crate) abort_every: u32,
    /// In the middle of which transaction the process dies; 0 for none.
    pub(crate) die_after: u32,
}

/// Processes payments until it is killed.
pub(crate) fn run(bootstrap: &str, options: &Options) -> Result<(), Failure> {
    let mut fenced = 0;
    loop {
        let mut committed = 0;
        let Err(stop) = Session::open(bootstrap, options).and_then(|mut session| session.work(&mut committed)) else {
            return Ok(());
        };
        fenced = match (stop.is_fenced(), committed) {
            (true, 0) => fenced + 1,
            (true, _) | (false, _) => 0,
        };
        let (Stop::StartOver(error) | Stop::Abort(error)) = stop;
        if fenced >= FENCED_MAX {
            return Err(Failure::Says(format!("another process runs as instance {}: {error}", options.instance)));
        }
        eprintln!("instance {}: starting over: {error}", options.instance);
        sleep(Duration::from_secs(1));
    }
}

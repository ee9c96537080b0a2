//! `oncelog doctor`: what clients of a broker are told, and whether they can connect there. Its report has a line for
//! each hop; what is wrong is said in a sentence that names the setting to change.

mod hops;
mod report;
mod transaction;

use std::io::{self, Write};
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::config::flags::Doctor;
use report::Report;

/// Kept back for removing what the transaction has made.
const CLEANING: Duration = Duration::from_secs(3);

/// Why the doctor is not content.
#[derive(Debug, thiserror::Error)]
pub enum Unwell {
    /// What is wrong, in one sentence.
    #[error("{0}")]
    Found(String),
    /// The report could not be written, or nothing could be asked at all.
    #[error("the report cannot be written: {0}")]
    Output(#[from] io::Error),
}

/// Looks, and writes the report.
///
/// # Errors
/// The first thing that is wrong.
pub fn run(flags: &Doctor, out: &mut (dyn Write + Send)) -> Result<(), Unwell> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut report = Report::new(out);
    runtime.block_on(look(flags, &mut report));
    // A name that is still being looked up would be waited for otherwise.
    runtime.shutdown_background();
    report.verdict()
}

async fn look(flags: &Doctor, report: &mut Report<'_>) {
    let deadline = Instant::now() + flags.timeout;
    if timeout_at(deadline, hops::look(flags, report)).await.is_err() {
        report.late(flags.timeout);
    }
    if flags.transaction && !report.is_wrong() {
        let trial = transaction::Trial::new(flags);
        let until = deadline.checked_sub(CLEANING.min(flags.timeout / 4)).unwrap_or(deadline);
        if timeout_at(until, trial.run(report)).await.is_err() {
            report.late(flags.timeout);
        }
        if timeout_at(deadline, trial.clean(report)).await.is_err() {
            report.note("there was no time left to remove the topic and the group");
        }
    }
}

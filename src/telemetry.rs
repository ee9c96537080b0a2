//! Logging set-up: lines for people or JSON, on standard error.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

use crate::config::{Log, LogFormat};

/// Starts logging for the whole process. To be called once, before anything logs.
///
/// # Errors
/// In words, if `log.level` cannot be read or logging has been started before.
pub fn init(log: &Log) -> Result<(), String> {
    let filter = EnvFilter::try_new(&log.level).map_err(|error| format!("log.level {:?}: {error}", log.level))?;
    // A line that cannot be written is dropped. Reporting it would write to the same closed pipe, and that panics.
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).log_internal_errors(false);
    let started = match log.format {
        LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).try_init(),
    };
    started.map_err(|error| format!("logging cannot start: {error}"))
}

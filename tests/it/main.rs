//! Integration tests: the whole broker in this process, spoken to over loopback.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::indexing_slicing, reason = "a test that finds less than it asked for has failed")]

#[allow(dead_code, reason = "what every test may do with a broker, whichever of it they do")]
mod broker;
#[allow(dead_code, reason = "all that can be asked of a broker, whichever of it is asked")]
mod raw;

mod admin;
mod bad_batches;
mod cases;
mod configs;
mod demo;
mod doctor;
mod full_disk;
mod groups;
mod hostile;
#[path = "../../conformance/kill9/history/mod.rs"]
#[allow(dead_code, reason = "what the loop of kills tells its history and asks of it; here it is tested")]
mod kill9_history;
mod operators;
mod oracle;
mod process;
mod recovery;
mod retention;
mod sessions;
mod smoke;
mod tool_markers;
mod tracing;

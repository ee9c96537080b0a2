//! The broker as a process of its own: started, killed, told to stop, and started again on what it left behind.

pub(crate) mod child;

mod bad_starts;
mod exactly_once;
mod kcat;
mod librdkafka;
mod oracle;
mod stop;
mod sync_failure;

//! Acts: one owner per state, one mailbox per owner. Gather, decide, store once, answer, then do what is owed.
//!
//! Owners are plain values (`ledger::LedgerOwner`, `partition::PartitionOwner`) that take letters and give posts;
//! threads only carry and wait. Nothing here knows Kafka's messages or SQL.

pub mod broker;
pub mod events;
pub mod ledger;
pub mod line;
pub mod mailroom;
pub mod partition;
pub mod partitions;
pub mod post;
pub mod readable;
pub mod reading;
pub mod room;
pub mod router;
mod settings;
pub mod start;
#[cfg(any(test, simulator))]
pub mod world;

//! Acts: one owner per state, one mailbox per owner. Gather, decide, store once, answer, then do what is owed.
//!
//! Owners are plain values (`ledger::LedgerOwner`, `partition::PartitionOwner`) that take letters and give posts;
//! threads only carry and wait. Nothing here knows Kafka's messages or SQL.

pub mod administration;
pub mod broker;
pub mod callers;
pub mod events;
pub mod ledger;
pub mod line;
pub mod mailroom;
pub mod partition;
pub mod partitions;
pub mod post;
pub mod readable;
pub mod reading;
pub mod retention;
pub mod room;
pub mod router;
pub mod sessions;
mod settings;
pub mod sizes;
pub mod start;
mod tools;
pub mod tracks;
#[cfg(any(test, simulator))]
#[cfg_attr(not(simulator), allow(dead_code, reason = "the simulator alone uses a part of it"))]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::arithmetic_side_effects,
    reason = "tests and the simulator alone have it: what cannot be ends them"
)]
pub mod world;

//! Decides. Transactions, producer sequences, last stable offset, groups, batch checks, segment arithmetic.
//!
//! Nothing here waits, reads a clock, touches a file, draws a random number or writes a log line: time, chance and
//! bytes come in by argument. A *step* takes a value and gives the next value and what follows from it; the old value
//! stands until its owner has stored the new one.

#![deny(clippy::arithmetic_side_effects)]

pub mod batch;
pub mod catalog;
pub mod fetch;
pub mod group;
pub mod ids;
pub mod layered;
pub mod ledger;
pub mod log;
pub mod partition;
pub mod refusal;
pub mod txn;

pub use ids::{
    Claim, Epoch, GroupId, InstanceId, MemberId, Now, Offset, Outcome, PartId, Producer, ReplyTo, TopicId, TopicName,
    TransactionalId,
};
pub use refusal::Refusal;

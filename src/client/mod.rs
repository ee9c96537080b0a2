//! A small Kafka client for our own commands. It asks one thing at a time, and waits a bounded time for an answer of
//! bounded size. It speaks to any broker, so it knows only what the protocol says.
//!
//! [`connection`] is one socket, [`cluster`] finds who has to be asked, and the others say what is asked.

mod admin;
pub mod cluster;
pub mod connection;
pub mod dial;
mod failure;
mod group;
mod producer;
mod reader;
mod records;

pub use cluster::{Cluster, Part, Whom};
pub use failure::Failure;
pub use group::{Member, is_over};
pub use producer::Producer;
pub use reader::{Isolation, Position, Read, Session};

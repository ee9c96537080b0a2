//! Kafka's bytes: frames, headers, the version table, refusal to code. Knows nothing of our state.
//!
//! A frame's way in: [`frame`] judges its length and its first four bytes before anything is allocated, [`header`]
//! takes the header off, [`guard`] proves that decoding the body cannot ask for more memory than a limit says. Only
//! then may `api` hand the body to `kafka_protocol`.

pub mod apis;
pub mod codes;
mod cursor;
pub mod fetch_response;
pub mod frame;
pub mod guard;
pub mod header;

pub use apis::{Api, Order};
pub use cursor::Malformed;

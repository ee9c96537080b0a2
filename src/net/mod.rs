//! Sockets: listeners and connections.
//!
//! One task per connection with two halves in it. `frames` reads: it judges a frame by its first eight bytes, waits
//! for the request's turn and for a place in the memory budget, and only then reads the rest. `answers` starts the
//! requests in their order, drives those that run side by side, and writes what they reply in that same order.

mod answers;
mod budget;
mod connection;
mod end;
mod frames;
mod limits;
mod listener;
mod observer;

pub use budget::Budget;
pub use end::End;
pub use limits::Limits;
pub use listener::{Edge, serve};
pub use observer::{Observer, Unobserved};

#[cfg(test)]
mod tests;

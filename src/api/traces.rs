//! What a request turns out to be about, told to whoever keeps traces of requests.

use std::sync::Arc;

use super::service::{Incoming, Peer, Pending, Reply};
use crate::engine::batch::Header;
use crate::engine::{Producer, Refusal};

/// Keeps traces of requests.
pub trait Traces: Send + Sync + 'static {
    /// Begins the trace of a request; `None` if this one is not traced.
    fn request(&self, peer: &Peer, request: &Incoming) -> Option<Arc<dyn Trace>>;
}

/// One request's trace. Over when it is dropped; without an answer if the client has gone.
pub trait Trace: Send + Sync {
    /// The request's work, with what is logged in it belonging to the trace.
    fn follow(&self, work: Pending) -> Pending;
    /// Something is known of the request. Must not wait.
    fn note(&self, fact: Fact<'_>);
    /// What it is answered.
    fn answered(&self, reply: &Reply);
}

/// Something that a request turned out to be.
#[derive(Debug, Clone, Copy)]
pub enum Fact<'a> {
    /// It belongs to this id's transaction.
    Transaction(&'a str),
    /// It says that this is who asks.
    Producer(Producer),
    /// It names this partition.
    Place {
        /// Its topic.
        topic: &'a str,
        /// Its index in the topic.
        index: i32,
    },
    /// It holds this batch, which has been checked.
    Batch {
        /// The batch's header.
        header: &'a Header,
        /// The whole batch.
        bytes: &'a [u8],
    },
    /// It is refused, or a part of it is.
    Refused(Refusal),
}

//! What the edge tells whoever counts.

use super::end::End;
use crate::api::service::Peer;
use crate::wire::Api;
use std::time::Duration;

/// Told what happens at the edge. Called on the connections' tasks, so it must not wait. Every method does nothing
/// unless it is written.
pub trait Observer: Send + Sync + 'static {
    /// A connection was accepted.
    fn opened(&self, _peer: &Peer) {}
    /// A connection is over; [`End::cause`] is a label.
    fn closed(&self, _peer: &Peer, _end: &End) {}
    /// A connection could not be accepted.
    fn accept_failed(&self, _listener: &str) {}
    /// A frame waited for so long until there was room for it in memory.
    fn queued(&self, _waited: Duration) {}
    /// A request of this many bytes is started.
    fn started(&self, _api: Api, _bytes: usize) {}
    /// A request was answered with this many bytes, after `elapsed` from its start; none when acks = 0.
    fn answered(&self, _api: Api, _elapsed: Duration, _bytes: usize) {}
}

/// Counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}

//! What the edge asks of the broker: one request in, one reply out.

use crate::wire::Api;
use bytes::Bytes;
use std::borrow::Cow;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

/// A request, its header taken off, its version served and its body passed by [`crate::wire::guard`].
#[derive(Debug)]
pub struct Incoming {
    /// What is asked.
    pub api: Api,
    /// In which version.
    pub version: i16,
    /// The number the client gave this request; the edge puts it on the answer.
    pub correlation_id: i32,
    /// The client's name for itself: anything it likes, so never a label, and escaped in a log (C-119).
    pub client_id: Option<String>,
    /// The body. Every slice of it keeps the whole frame alive and counted against the in-flight budget: what
    /// outlives the request is copied out of it.
    pub body: Bytes,
}

/// Who is at the other end of a connection.
#[derive(Debug)]
pub struct Peer {
    /// The client's address.
    pub address: SocketAddr,
    /// The listener it came in by: `external` or `internal`.
    pub listener: Arc<str>,
    /// Numbers the connections of this process.
    pub connection: u64,
    /// The port it came in by.
    pub local_port: u16,
}

/// What becomes of a request.
#[derive(Debug)]
pub enum Reply {
    /// The body of the answer, in pieces that are written one behind the other without being copied. The edge puts
    /// length and response header in front.
    Answer(Vec<Bytes>),
    /// Nothing is sent: a Produce with acks = 0 (V-135).
    Nothing,
    /// The connection is closed once the answers before this one are written, with the reason in the log: a body that
    /// does not decode (V-104), an error that acks = 0 leaves no answer for (T-312).
    Close(Cow<'static, str>),
}

/// A reply that is being made. Dropped when the client is gone: whatever waits inside it must be safe to drop.
pub type Pending = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// Serves requests.
pub trait Service: Send + Sync + 'static {
    /// Takes a request. The future is polled at once, and the futures of one connection for the first time in the
    /// order of its requests: what is sent to an owner before the first wait arrives in that order (V-133).
    fn call(&self, peer: &Arc<Peer>, request: Incoming) -> Pending;
}

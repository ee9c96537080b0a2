//! What a listener lets clients take.

use crate::wire::frame::FrameLimits;
use std::time::Duration;

/// Bounds of a listener and its connections.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Length of a request.
    pub frame: FrameLimits,
    /// Connections of one listener; more wait in the kernel's backlog (V-142).
    pub max_connections: usize,
    /// Requests of one connection that are started and not yet answered.
    pub max_ahead: u32,
    /// Bytes of request frames in flight over all listeners. A full budget stops reading sockets.
    pub in_flight_bytes: usize,
    /// The same for what decoding allocates.
    pub decoded_bytes: usize,
    /// A connection with no byte in or out for this long is closed, whatever it waits for (V-141).
    pub idle_timeout: Duration,
    /// A frame that has begun arrives within this time and one second more for every megabyte: while it does not, it
    /// holds its place in the budget.
    pub frame_timeout: Duration,
    /// How long a client that has shut down its side still gets the answers it waits for. A request that is parked
    /// longer is dropped (V-134).
    pub linger: Duration,
    /// How long requests in flight may take to finish when the broker stops.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame: FrameLimits::default(),
            max_connections: 10_000,
            max_ahead: 16,
            in_flight_bytes: 256 << 20,
            decoded_bytes: 128 << 20,
            idle_timeout: Duration::from_secs(600),
            frame_timeout: Duration::from_secs(30),
            linger: Duration::from_millis(500),
            drain: Duration::from_secs(3),
        }
    }
}

impl Limits {
    /// How long a frame of this length may take to arrive.
    pub(super) fn frame_time(&self, length: usize) -> Duration {
        self.frame_timeout + Duration::from_secs(u64::try_from(length >> 20).unwrap_or(u64::MAX))
    }
}

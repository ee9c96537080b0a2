//! The memory that requests in flight may take, over all connections.

use super::limits::Limits;
use crate::wire::guard::MAX_DECODED_BYTES;
use bytes::{Bytes, BytesMut};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Frames up to this length have a lane of their own, so that few long frames cannot hold up every heartbeat.
const SHORT_FRAME_BYTES: usize = 64 << 10;

/// Counts request bytes in flight. Whoever finds it full waits, and while it waits does not read its socket.
#[derive(Debug)]
pub struct Budget {
    short: Arc<Semaphore>,
    long: Arc<Semaphore>,
    decoded: Arc<Semaphore>,
}

/// A part of the budget, given back when dropped.
#[derive(Debug)]
pub(super) struct Share(#[expect(dead_code, reason = "held for its drop")] Option<OwnedSemaphorePermit>);

impl Budget {
    /// A budget of the sizes in `limits`, but never too small for the longest frame.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        let longest = limits.frame.max_bytes.max(limits.frame.plain_max_bytes);
        let short = (limits.in_flight_bytes / 4).max(SHORT_FRAME_BYTES);
        let long = limits.in_flight_bytes.saturating_sub(short).max(longest);
        let semaphore = |bytes: usize| Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS)));
        Self {
            short: semaphore(short),
            long: semaphore(long),
            decoded: semaphore(limits.decoded_bytes.max(MAX_DECODED_BYTES)),
        }
    }

    /// Waits for room for a frame.
    pub(super) async fn frame(&self, bytes: usize) -> Share {
        let lane = if bytes <= SHORT_FRAME_BYTES { &self.short } else { &self.long };
        take(lane, bytes).await
    }

    /// Waits for room for what decoding allocates. Asked for with the frame's share in hand; whoever holds both needs
    /// no more, so nobody waits in a circle.
    pub(super) async fn decoded(&self, bytes: usize) -> Share {
        take(&self.decoded, bytes).await
    }

    /// Bytes that are free: of short frames, of long ones, and of what decoding allocates.
    #[must_use]
    pub fn free_bytes(&self) -> [usize; 3] {
        [self.short.available_permits(), self.long.available_permits(), self.decoded.available_permits()]
    }
}

/// The semaphores are never closed, so an error cannot come; were it to, the request would only go uncounted.
async fn take(lane: &Arc<Semaphore>, bytes: usize) -> Share {
    let permits = u32::try_from(bytes).unwrap_or(u32::MAX);
    Share(Arc::clone(lane).acquire_many_owned(permits).await.ok())
}

/// A frame's bytes together with its share: the share goes back when the last slice of the frame is dropped, wherever
/// that slice has gone.
struct Counted {
    bytes: BytesMut,
    _share: Share,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Share {
    pub(super) fn bind(self, bytes: BytesMut) -> Bytes {
        Bytes::from_owner(Counted { bytes, _share: self })
    }
}

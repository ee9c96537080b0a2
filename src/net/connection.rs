//! One connection: its two halves, its clock, and what becomes of requests in flight when it ends.

use super::answers;
use super::end::End;
use super::frames::{self, Frames};
use super::listener::Edge;
use crate::api::service::Peer;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// When something last went over a connection.
#[derive(Debug)]
pub(super) struct Activity {
    opened: Instant,
    last_ms: AtomicU64,
}

impl Activity {
    fn new() -> Self {
        Self { opened: Instant::now(), last_ms: AtomicU64::new(0) }
    }

    pub(super) fn note(&self) {
        let since = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(since, Ordering::Relaxed);
    }

    /// Comes when nothing went over the connection for `limit`.
    async fn idle(&self, limit: Duration) {
        loop {
            let until = self.opened + Duration::from_millis(self.last_ms.load(Ordering::Relaxed)) + limit;
            if Instant::now() >= until {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }
}

/// Serves a connection to its end.
pub(super) async fn run<R, W>(read: R, write: W, peer: &Arc<Peer>, edge: &Edge, shutdown: watch::Receiver<bool>) -> End
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let activity = Activity::new();
    let (ready, requests) = mpsc::channel(usize::try_from(edge.limits.max_ahead).unwrap_or(1).max(1));
    let reading = frames::read(Frames::new(read, &activity, edge.limits.linger), edge, ready, shutdown);
    let answering = answers::write(write, requests, peer, edge, &activity);
    tokio::pin!(reading, answering);
    let end = tokio::select! {
        biased;
        end = &mut answering => return end,
        end = &mut reading => end,
        () = activity.idle(edge.limits.idle_timeout) => return End::Idle(edge.limits.idle_timeout),
    };
    let patience = match end {
        End::Left => edge.limits.linger,
        End::Stopping => edge.limits.drain,
        // A broken or hostile connection: what is in flight is lost with it (V-104).
        End::Broken(_)
        | End::Idle(_)
        | End::SlowFrame(_)
        | End::Foreign(_)
        | End::Malformed { .. }
        | End::Refused(_)
        | End::LongAnswer(_) => return end,
    };
    // Reading is over, so answering ends by itself once everything is answered; what is not answered in time is dropped.
    match tokio::time::timeout(patience, answering).await {
        Ok(End::Left) | Err(_) => end,
        Ok(other) => other,
    }
}

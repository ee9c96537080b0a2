//! Why connections end, and how often that is worth a line in the log.

use crate::api::service::Peer;
use crate::wire::frame::Foreign;
use crate::wire::{Api, Malformed};
use parking_lot::Mutex;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;
use tokio::time::Instant;

/// Why a connection is over.
#[derive(Debug, thiserror::Error)]
pub enum End {
    /// The client closed it.
    #[error("the client closed the connection")]
    Left,
    /// It broke.
    #[error("the connection broke: {0}")]
    Broken(io::Error),
    /// Nothing went over it for too long (V-141).
    #[error("nothing came or went for {0:?}")]
    Idle(Duration),
    /// The broker stops.
    #[error("the broker stops")]
    Stopping,
    /// A frame began and did not arrive in time.
    #[error("a frame did not arrive within {0:?}")]
    SlowFrame(Duration),
    /// The bytes are no request to us (V-101, V-104).
    #[error("{0}")]
    Foreign(#[from] Foreign),
    /// The request is not what it claims to be (V-104).
    #[error("{api} in version {version} from client {client:?} does not decode: {why}")]
    Malformed {
        /// What it claims to ask.
        api: Api,
        /// In which version.
        version: i16,
        /// The client's name for itself, cut short.
        client: String,
        /// What is wrong with it.
        why: Malformed,
    },
    /// The service asked for it ([`crate::api::service::Reply::Close`]).
    #[error("{0}")]
    Refused(Cow<'static, str>),
    /// An answer is longer than a frame can say.
    #[error("an answer to {0} is longer than a frame can be")]
    LongAnswer(Api),
}

impl End {
    /// A word for it, from a fixed list: a label of metrics and logs.
    #[must_use]
    pub const fn cause(&self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Broken(_) => "broken",
            Self::Idle(_) => "idle",
            Self::Stopping => "stopping",
            Self::SlowFrame(_) => "slow_frame",
            Self::Foreign(Foreign::Http) => "http",
            Self::Foreign(Foreign::Tls) => "tls",
            Self::Foreign(Foreign::Proxy) => "proxy_header",
            Self::Foreign(Foreign::Negative(_) | Foreign::TooLong { .. } | Foreign::TooShort(_)) => "frame_length",
            Self::Foreign(Foreign::UnknownApi(_)) => "unknown_api",
            Self::Foreign(Foreign::UnsupportedVersion { .. }) => "unsupported_version",
            Self::Malformed { .. } => "malformed",
            Self::Refused(_) => "refused",
            Self::LongAnswer(_) => "long_answer",
        }
    }

    /// Whether it is the ordinary course of things.
    const fn is_ordinary(&self) -> bool {
        match self {
            Self::Left | Self::Broken(_) | Self::Idle(_) | Self::Stopping => true,
            Self::SlowFrame(_) | Self::Foreign(_) | Self::Malformed { .. } | Self::Refused(_) | Self::LongAnswer(_) => {
                false
            }
        }
    }
}

/// How long a cause stays silent after a line about it.
const SILENCE: Duration = Duration::from_secs(10);

/// Writes why connections ended: one line for a connection, and of one cause not more than one line in ten seconds,
/// which then says how many it stands for.
#[derive(Debug, Default)]
pub(super) struct Complaints {
    heard: Mutex<BTreeMap<&'static str, Heard>>,
}

#[derive(Debug)]
struct Heard {
    last: Instant,
    silenced: u64,
}

impl Complaints {
    pub(super) fn connection_ended(&self, peer: &Peer, end: &End) {
        let (listener, address, cause) = (&*peer.listener, peer.address, end.cause());
        if end.is_ordinary() {
            tracing::debug!(listener, %address, cause, "connection closed: {end}");
        } else if let Some(silenced) = self.admits(cause, Instant::now()) {
            tracing::warn!(listener, %address, cause, silenced, "connection closed: {end}");
        }
    }

    pub(super) fn accept_failed(&self, listener: &str, error: &io::Error) {
        if let Some(silenced) = self.admits("accept", Instant::now()) {
            tracing::warn!(listener, silenced, "cannot accept a connection: {error}");
        }
    }

    /// Whether a line about this cause may be written now, and how many were left out since the last.
    fn admits(&self, cause: &'static str, now: Instant) -> Option<u64> {
        let mut heard = self.heard.lock();
        match heard.get_mut(cause) {
            Some(earlier) if now.duration_since(earlier.last) < SILENCE => {
                earlier.silenced = earlier.silenced.saturating_add(1);
                None
            }
            Some(earlier) => {
                earlier.last = now;
                Some(std::mem::take(&mut earlier.silenced))
            }
            None => {
                heard.insert(cause, Heard { last: now, silenced: 0 });
                Some(0)
            }
        }
    }
}

#[cfg(test)]
mod tests;

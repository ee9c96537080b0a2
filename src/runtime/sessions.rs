//! Fetch sessions, as requests go by them. No owner knows of them: they are about what clients were told.

use std::mem;

use parking_lot::Mutex;

use crate::engine::Refusal;
use crate::engine::fetch::session::Session;
use crate::engine::fetch::sessions::{Begun, Limits, Sessions};
use crate::runtime::broker::Broker;

/// All of them.
pub struct FetchSessions(Mutex<Sessions>);

impl Default for FetchSessions {
    fn default() -> Self {
        Self(Mutex::new(Sessions::new(Limits::default())))
    }
}

/// How a Fetch stands to a session. Dropped with a request whose client hung up, it takes the session along.
pub struct FetchSession<'a> {
    broker: &'a Broker,
    begun: Begun,
}

impl Broker {
    /// How many fetch sessions there are, and how many gave way to others since the start.
    #[must_use]
    pub fn fetch_session_figures(&self) -> (usize, u64) {
        self.fetches.0.lock().figures()
    }

    /// Judges the session id and epoch of a Fetch (F-702).
    ///
    /// # Errors
    /// `FetchSessionIdNotFound`, `InvalidFetchSessionEpoch`.
    pub fn fetch_session(&self, id: i32, epoch: i32) -> Result<FetchSession<'_>, Refusal> {
        // The two that no session is looked up for: clients without sessions do not meet at the lock.
        let begun = match (id, epoch) {
            (0, -1) => Begun::Alone,
            (0, 0) => Begun::Fresh,
            _ => self.fetches.0.lock().begin(id, epoch, self.clock().now().mono_ms)?,
        };
        Ok(FetchSession { broker: self, begun })
    }
}

impl FetchSession<'_> {
    /// The session that the request goes by, if it is in one.
    #[must_use]
    pub fn session(&self) -> Option<&Session> {
        match &self.begun {
            Begun::Alone | Begun::Fresh => None,
            Begun::Within(loan) => Some(&loan.session),
        }
    }

    /// The same, to be changed.
    pub fn session_mut(&mut self) -> Option<&mut Session> {
        match &mut self.begun {
            Begun::Alone | Begun::Fresh => None,
            Begun::Within(loan) => Some(&mut loan.session),
        }
    }

    /// Ends the request: the session is kept for the next one. A fresh one is made by `make`, with all its partitions
    /// answered. Gives the id to answer with, 0 for none.
    #[must_use]
    pub fn end(mut self, make: impl FnOnce() -> Session) -> i32 {
        let (fetches, now_ms) = (&self.broker.fetches, self.broker.clock().now().mono_ms);
        match mem::replace(&mut self.begun, Begun::Alone) {
            Begun::Alone => 0,
            Begun::Fresh => {
                let session = make();
                fetches.0.lock().keep(session, now_ms, draw)
            }
            Begun::Within(loan) => fetches.0.lock().give_back(loan, now_ms),
        }
    }
}

impl Drop for FetchSession<'_> {
    fn drop(&mut self) {
        if let Begun::Within(loan) = &self.begun {
            self.broker.fetches.0.lock().forfeit(loan);
        }
    }
}

/// Any number at all; the ones that are not fit are drawn again.
fn draw() -> i32 {
    let [a, b, c, d, ..] = uuid::Uuid::new_v4().into_bytes();
    i32::from_be_bytes([a, b, c, d])
}

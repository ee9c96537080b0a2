//! The only reader of clocks. Everything else is given [`Now`] by argument.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use crate::engine::Now;

/// A handle on the two clocks: cheap to clone, the same clock in every clone.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    /// The machine's clocks; the monotonic one counts from here.
    System { start: Instant },
    /// A clock that moves only when it is told to.
    Manual(Arc<Manual>),
}

struct Manual {
    now: Mutex<Now>,
    watchers: Mutex<Vec<Arc<dyn Fn() + Send + Sync>>>,
}

impl Clock {
    /// The machine's clocks. Monotonic time starts at 0 here, so make one at the start and clone it.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this file is where clocks are read")]
    pub fn system() -> Self {
        Self(Source::System { start: Instant::now() })
    }

    /// A clock for tests: monotonic time 0, wall time `start_wall_ms`; it stands still until it is moved.
    #[must_use]
    pub fn manual(start_wall_ms: i64) -> Self {
        let now = Mutex::new(Now { mono_ms: 0, wall_ms: start_wall_ms });
        Self(Source::Manual(Arc::new(Manual { now, watchers: Mutex::new(Vec::new()) })))
    }

    /// Reads both clocks. A machine whose wall clock lies before 1970 reads as 0 there.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this file is where clocks are read")]
    pub fn now(&self) -> Now {
        match &self.0 {
            Source::System { start } => {
                let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Now { mono_ms: whole_ms(start.elapsed()), wall_ms: whole_ms(wall) }
            }
            Source::Manual(manual) => *manual.now.lock(),
        }
    }

    /// The monotonic clock, as exactly as it goes: for measuring how long something took, never for deciding.
    #[must_use]
    pub fn exact(&self) -> Duration {
        match &self.0 {
            Source::System { start } => start.elapsed(),
            Source::Manual(manual) => Duration::from_millis(u64::try_from(manual.now.lock().mono_ms).unwrap_or(0)),
        }
    }

    /// How long a thread that has nothing to do before `deadline_ms` (monotonic) may sleep: zero when it has passed.
    ///
    /// `None` on a manual clock: sleep until woken, and let [`Clock::subscribe`] do the waking.
    #[must_use]
    pub fn sleep_until(&self, deadline_ms: i64) -> Option<Duration> {
        match &self.0 {
            Source::System { .. } => {
                let left_ms = deadline_ms.saturating_sub(self.now().mono_ms);
                Some(Duration::from_millis(u64::try_from(left_ms).unwrap_or(0)))
            }
            Source::Manual(_) => None,
        }
    }

    /// Calls `told` after every move of a manual clock, on the thread that moved it. The system's clock calls nobody:
    /// whoever waits on it sleeps for [`Clock::sleep_until`].
    pub fn subscribe(&self, told: Box<dyn Fn() + Send + Sync>) {
        match &self.0 {
            Source::System { .. } => drop(told),
            Source::Manual(manual) => manual.watchers.lock().push(Arc::from(told)),
        }
    }

    /// Moves both hands of a manual clock forward by `ms`. Does nothing on the system's clock.
    pub fn advance(&self, ms: u32) {
        self.moved(|now| Now {
            mono_ms: now.mono_ms.saturating_add(i64::from(ms)),
            wall_ms: now.wall_ms.saturating_add(i64::from(ms)),
        });
    }

    /// Sets the wall time of a manual clock, also backwards; monotonic time stays. Does nothing on the system's clock.
    pub fn set_wall(&self, wall_ms: i64) {
        self.moved(|now| Now { mono_ms: now.mono_ms, wall_ms });
    }

    fn moved(&self, next: impl FnOnce(Now) -> Now) {
        match &self.0 {
            Source::System { .. } => {}
            Source::Manual(manual) => {
                {
                    let mut now = manual.now.lock();
                    *now = next(*now);
                }
                // Called without the lock: a watcher may well read the clock, or subscribe another.
                let watchers = manual.watchers.lock().clone();
                for told in watchers {
                    told();
                }
            }
        }
    }
}

impl fmt::Debug for Manual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manual").field("now", &*self.now.lock()).finish_non_exhaustive()
    }
}

fn whole_ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;

//! The current of a simulated disk.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

/// Counts the changes a disk is asked for, and goes off after one of them. Clones are the same current.
#[derive(Debug, Clone, Default)]
pub struct Power(Arc<Mutex<Current>>);

#[derive(Debug, Default)]
struct Current {
    spent: u64,
    off_at: Option<u64>,
}

impl Power {
    /// Changes so far.
    #[must_use]
    pub fn spent(&self) -> u64 {
        self.0.lock().spent
    }

    /// Goes off with the `more`th change from now; that one is under way then.
    pub fn off_after(&self, more: u64) {
        let mut current = self.0.lock();
        current.off_at = Some(current.spent.saturating_add(more));
    }

    /// Will not go off after all.
    pub fn on(&self) {
        self.0.lock().off_at = None;
    }

    /// Whether it is off.
    #[must_use]
    pub fn is_off(&self) -> bool {
        let current = self.0.lock();
        current.off_at.is_some_and(|at| current.spent >= at)
    }

    /// Whether it went off with the last change: that one may have reached the disk, or a part of it.
    pub(super) fn is_going(&self) -> bool {
        let current = self.0.lock();
        current.off_at == Some(current.spent)
    }

    /// For one change.
    pub(super) fn spend(&self) -> io::Result<()> {
        let mut current = self.0.lock();
        current.spent = current.spent.saturating_add(1);
        let off = current.off_at.is_some_and(|at| current.spent >= at);
        if off { Err(io::Error::other("the power is off")) } else { Ok(()) }
    }

    /// For looking.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.is_off() { Err(io::Error::other("the power is off")) } else { Ok(()) }
    }
}

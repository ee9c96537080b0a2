//! How much a simulated disk holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of all files together; without a limit unless one is set. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Capacity(Arc<AtomicU64>);

impl Default for Capacity {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(u64::MAX)))
    }
}

impl Capacity {
    pub(super) fn set(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Bytes that are free while so many are used.
    pub(super) fn free(&self, used: impl FnOnce() -> u64) -> u64 {
        match self.bytes() {
            u64::MAX => u64::MAX,
            capacity => capacity.saturating_sub(used()),
        }
    }
}

//! What has come about so far.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::client::{Failure, Isolation};

/// One thing that is counted.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What has come about so far, in all.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) committed: Count,
    pub(super) aborted: Count,
    pub(super) timed_out: Count,
    /// Requests of a producer whose id has another owner.
    pub(super) fenced: Count,
    /// Batches that belong to no transaction.
    pub(super) stray: Count,
    pub(super) sent_twice: Count,
    pub(super) out_of_order: Count,
    read_committed: Count,
    read_uncommitted: Count,
    failures: Count,
    last: Mutex<String>,
}

impl Tally {
    pub(super) fn ended(&self, commit: bool) {
        if commit { &self.committed } else { &self.aborted }.add(1);
    }

    pub(super) fn read(&self, isolation: Isolation, records: u64) {
        match isolation {
            Isolation::ReadCommitted => self.read_committed.add(records),
            Isolation::ReadUncommitted => self.read_uncommitted.add(records),
        }
    }

    /// Something came about that was not meant.
    pub(super) fn failed(&self, failure: &Failure) {
        self.failures.add(1);
        *self.last.lock() = failure.to_string();
    }

    pub(super) fn committed(&self) -> u64 {
        self.committed.get()
    }

    pub(super) fn last_failure(&self) -> String {
        let last = self.last.lock().clone();
        if last.is_empty() { "there was too little time".to_owned() } else { last }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = Count::get;
        write!(
            f,
            "{} committed, {} aborted, {} timed out, {} fenced, {} stray, {} sent twice, {} out of order; \
             read {} committed and {} of all",
            n(&self.committed),
            n(&self.aborted),
            n(&self.timed_out),
            n(&self.fenced),
            n(&self.stray),
            n(&self.sent_twice),
            n(&self.out_of_order),
            n(&self.read_committed),
            n(&self.read_uncommitted),
        )?;
        match n(&self.failures) {
            0 => Ok(()),
            failures => write!(f, "; began again {failures} times, last for: {}", self.last.lock()),
        }
    }
}

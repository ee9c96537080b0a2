//! What is on the disk, and what the disk takes.

use std::time::Duration;

use prometheus::{Error, IntCounter, IntGauge};

use super::series::{Histograms, Table};
use super::{BUCKETS, Metrics, SyncedFile, count};

#[derive(Debug)]
pub(super) struct Storage {
    fsync: Histograms<SyncedFile>,
    partitions_offline: IntGauge,
    log_verified_bytes: IntCounter,
    segments_removed: IntCounter,
    bytes_removed: IntCounter,
    log_bytes: IntGauge,
    log_segments: IntGauge,
    checkpoint_debt: IntGauge,
    disk_total_bytes: IntGauge,
    disk_free_bytes: IntGauge,
    disk_space_low: IntGauge,
    disk_reserve_spent: IntCounter,
}

/// What logs take at one moment, those that are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogSizes {
    /// Bytes of batches.
    pub bytes: u64,
    /// Segments.
    pub segments: u64,
    /// Bytes that a recovery would have to verify.
    pub debt_bytes: u64,
}

impl Storage {
    pub(super) fn new(table: &Table) -> Result<Self, Error> {
        Ok(Self {
            fsync: table.histograms(("fsync_duration_seconds", "Time one sync took"), "file", BUCKETS)?,
            partitions_offline: table.int_gauge("partitions_offline", "Partitions that cannot be served: damaged")?,
            log_verified_bytes: table.counter("log_verified_bytes_total", "Bytes of logs verified by recoveries")?,
            segments_removed: table.counter("log_segments_removed_total", "Segments removed below a log start")?,
            bytes_removed: table.counter("log_bytes_removed_total", "Bytes of batches in them")?,
            log_bytes: table.int_gauge("log_bytes", "Bytes of batches in the logs that are loaded")?,
            log_segments: table.int_gauge("log_segments", "Segments of the logs that are loaded")?,
            checkpoint_debt: table.int_gauge("checkpoint_debt_bytes", "Bytes that a recovery would have to verify")?,
            disk_total_bytes: table.int_gauge("disk_total_bytes", "Bytes of the file system that data_dir is on")?,
            disk_free_bytes: table.int_gauge("disk_free_bytes", "Bytes that may still be written")?,
            disk_space_low: table.int_gauge("disk_space_low", "1 while records are refused for want of space")?,
            disk_reserve_spent: table.counter("disk_reserve_spent_total", "Times the reserve was given up")?,
        })
    }
}

impl Metrics {
    /// A sync came back.
    pub fn synced(&self, file: SyncedFile, took: Duration) {
        self.storage.fsync.observe(file, took.as_secs_f64());
    }

    /// Sets how many partitions cannot be served.
    pub fn set_partitions_offline(&self, count: i64) {
        self.storage.partitions_offline.set(count);
    }

    /// A partition was opened after an end that was not in order, and so many bytes of its log were verified.
    pub fn log_verified(&self, bytes: u64) {
        self.storage.log_verified_bytes.inc_by(bytes);
    }

    /// Bytes verified so far.
    #[must_use]
    pub fn log_verified_bytes(&self) -> u64 {
        self.storage.log_verified_bytes.get()
    }

    /// Segments left a log, by retention or because a client asked.
    pub fn segments_removed(&self, segments: u64, bytes: u64) {
        self.storage.segments_removed.inc_by(segments);
        self.storage.bytes_removed.inc_by(bytes);
    }

    /// Sets what logs take.
    pub fn set_log_sizes(&self, sizes: &LogSizes) {
        self.storage.log_bytes.set(count(sizes.bytes));
        self.storage.log_segments.set(count(sizes.segments));
        self.storage.checkpoint_debt.set(count(sizes.debt_bytes));
    }

    /// Sets the size of the disk, how much of it is free, and whether records are refused for want of it.
    pub fn set_disk(&self, total_bytes: u64, free_bytes: u64, is_low: bool) {
        self.storage.disk_total_bytes.set(count(total_bytes));
        self.storage.disk_free_bytes.set(count(free_bytes));
        self.storage.disk_space_low.set(i64::from(is_low));
    }

    /// What was set aside was given up for a write that found the disk full.
    pub fn disk_reserve_spent(&self) {
        self.storage.disk_reserve_spent.inc();
    }
}

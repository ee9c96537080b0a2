//! Gauges by topic, with a cap: what does not fit is folded into one series, so a scrape never grows with the topics.

use parking_lot::Mutex;
use prometheus::{Error, GaugeVec, IntCounter};

use super::series::Table;
use crate::engine::TopicName;

/// Topics that have series of their own.
pub(super) const CAP: usize = 200;

/// The series of all other topics. The brackets keep it apart from any topic's name.
pub(super) const OTHER: &str = "(other)";

/// How far a topic's worst partition holds read_committed readers back: watermark minus last stable offset.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct StableLag {
    /// Records a read_committed reader may not have yet.
    pub records: i64,
    /// Age of the oldest of them, in seconds.
    pub seconds: f64,
}

/// The two families of last-stable-offset lag.
#[derive(Debug)]
pub(super) struct ByTopic {
    records: GaugeVec,
    seconds: GaugeVec,
    dropped: IntCounter,
    /// Held while the families are being filled or read: a scrape sees the old topics or the new ones.
    filling: Mutex<()>,
}

impl ByTopic {
    pub(super) fn new(table: &Table, dropped: IntCounter) -> Result<Self, Error> {
        let records = "partition_lso_lag_records";
        let seconds = "partition_lso_lag_seconds";
        let by = &["topic"];
        let families = Self {
            records: table.open_gauges(
                records,
                "Records between last stable offset and watermark, worst partition",
                by,
            )?,
            seconds: table.open_gauges(seconds, "Age of the oldest record held back, worst partition", by)?,
            dropped,
            filling: Mutex::new(()),
        };
        families.fill(Vec::new())?;
        Ok(families)
    }

    /// Replaces what was there. The topics that lag most keep series of their own.
    pub(super) fn fill(&self, mut lags: Vec<(TopicName, StableLag)>) -> Result<(), Error> {
        let held = self.filling.lock();
        lags.sort_by(|(a, x), (b, y)| {
            y.records.cmp(&x.records).then(y.seconds.total_cmp(&x.seconds)).then_with(|| a.cmp(b))
        });
        let folded = lags.split_off(lags.len().min(CAP));
        let worst = folded.iter().fold(StableLag::default(), |worst, (_, lag)| StableLag {
            records: worst.records.max(lag.records),
            seconds: worst.seconds.max(lag.seconds),
        });
        self.records.reset();
        self.seconds.reset();
        self.set(OTHER, worst)?;
        for (topic, lag) in &lags {
            self.set(topic.as_str(), *lag)?;
        }
        self.dropped.inc_by(u64::try_from(folded.len()).unwrap_or(u64::MAX));
        drop(held);
        Ok(())
    }

    /// Runs `read` while nobody fills.
    pub(super) fn still<T>(&self, read: impl FnOnce() -> T) -> T {
        let _held = self.filling.lock();
        read()
    }

    fn set(&self, topic: &str, lag: StableLag) -> Result<(), Error> {
        // Exact up to 2^53 records.
        #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
        self.records.get_metric_with_label_values(&[topic])?.set(lag.records as f64);
        self.seconds.get_metric_with_label_values(&[topic])?.set(lag.seconds);
        Ok(())
    }
}

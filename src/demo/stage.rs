//! What all actors share: where the broker is, and the topics.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};

use super::tally::Tally;
use crate::client::{Cluster, Failure, Part};
use crate::config::HostPort;

/// How long one answer may take; a member that joins waits for the others.
const PATIENCE: Duration = Duration::from_secs(15);

/// The demo is to run for weeks: old segments go when a partition has more than 16 MiB.
const SETTINGS: &[(&str, &str)] = &[("segment.bytes", "1048576"), ("retention.bytes", "16777216")];

const ORDERS: (&str, i32) = ("demo-orders", 3);
const PAYMENTS: (&str, i32) = ("demo-payments", 3);
const AUDIT: (&str, i32) = ("demo-audit", 1);

/// What all actors share.
pub(super) struct Stage {
    bootstrap: Vec<HostPort>,
    /// Whether the topics are there, as far as is known.
    made: AtomicBool,
    pub(super) tally: Tally,
    pub(super) orders: Vec<Part>,
    pub(super) payments: Vec<Part>,
    pub(super) audit: Vec<Part>,
}

impl Stage {
    pub(super) fn new(bootstrap: &[HostPort]) -> Self {
        let parts = |(name, count): (&str, i32)| (0..count).map(|index| Part::new(name, index)).collect();
        Self {
            bootstrap: bootstrap.to_vec(),
            made: AtomicBool::new(false),
            tally: Tally::default(),
            orders: parts(ORDERS),
            payments: parts(PAYMENTS),
            audit: parts(AUDIT),
        }
    }

    /// A connection to a broker that has the topics.
    pub(super) async fn connect(&self, client_id: &str) -> Result<Cluster, Failure> {
        let mut cluster = Cluster::connect(&self.bootstrap, client_id, PATIENCE).await?;
        if !self.made.load(Ordering::Relaxed) {
            for (name, count) in [ORDERS, PAYMENTS, AUDIT] {
                cluster.make_topic(name, count, SETTINGS).await?;
            }
            self.made.store(true, Ordering::Relaxed);
        }
        Ok(cluster)
    }

    /// An actor met something that was not meant, and begins again. Perhaps the topics are gone.
    pub(super) fn failed(&self, failure: &Failure) {
        self.made.store(false, Ordering::Relaxed);
        self.tally.failed(failure);
    }
}

/// One of these after the other.
pub(super) fn pick(parts: &[Part], n: usize) -> Part {
    parts.get(n.checked_rem(parts.len()).unwrap_or(0)).cloned().unwrap_or_else(|| Part::new("", 0))
}

/// Ticks that are not made up for when some were missed.
pub(super) fn every(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

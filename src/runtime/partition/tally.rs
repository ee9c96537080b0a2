//! What a partition's appends come to, for the metrics of its topic.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::batch::Header;
use crate::engine::{Outcome, Producer, TopicName};
use crate::metrics::{Metrics, TopicTraffic};

/// Something appended.
#[derive(Debug, Clone, Copy)]
pub(super) enum Counted {
    /// Records; in whose transaction, if in one.
    Batch { within: Option<i64>, records: u64, bytes: u64 },
    /// A marker.
    Marker { producer_id: i64, outcome: Outcome },
}

/// Counts of one partition, since it was opened.
pub(super) struct Tally {
    metrics: Arc<Metrics>,
    topic: TopicName,
    traffic: Arc<TopicTraffic>,
    generation: u64,
    /// Batches and bytes of transactions that are open, by producer: in vain if they are aborted.
    open: BTreeMap<i64, (u64, u64)>,
}

impl Counted {
    pub(super) fn batch(header: &Header, bytes: usize) -> Self {
        let within = header.producer().filter(|_| header.is_transactional()).map(|producer| producer.id);
        let records = u64::try_from(header.count).unwrap_or(0);
        Self::Batch { within, records, bytes: u64::try_from(bytes).unwrap_or(0) }
    }

    pub(super) fn marker(producer: Producer, outcome: Outcome) -> Self {
        Self::Marker { producer_id: producer.id, outcome }
    }
}

impl Tally {
    pub(super) fn of(metrics: &Arc<Metrics>, topic: &TopicName) -> Self {
        let generation = metrics.topic_generation();
        let (traffic, metrics) = (metrics.topic(topic), Arc::clone(metrics));
        Self { metrics, topic: topic.clone(), traffic, generation, open: BTreeMap::new() }
    }

    /// Counts what a turn has appended, in its order.
    pub(super) fn count(&mut self, counted: &[Counted]) {
        let generation = self.metrics.topic_generation();
        if generation != self.generation {
            (self.traffic, self.generation) = (self.metrics.topic(&self.topic), generation);
        }
        for counted in counted {
            match *counted {
                Counted::Batch { within, records, bytes } => {
                    self.traffic.produced(records, bytes);
                    if let Some(producer_id) = within {
                        let (batches, sum) = self.open.entry(producer_id).or_default();
                        (*batches, *sum) = (batches.saturating_add(1), sum.saturating_add(bytes));
                    }
                }
                Counted::Marker { producer_id, outcome } => {
                    let open = self.open.remove(&producer_id);
                    if let (Some((batches, bytes)), Outcome::Abort) = (open, outcome) {
                        self.traffic.aborted(batches, bytes);
                    }
                }
            }
        }
    }
}

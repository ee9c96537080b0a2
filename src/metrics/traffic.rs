//! What is written and read, by topic. A topic keeps its series while it exists, the first ones up to a cap.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use prometheus::{Error, IntCounter, IntCounterVec};

use super::series::Table;
use super::topics::{CAP, OTHER};
use crate::engine::TopicName;

/// One topic's counters; cheap to keep.
#[derive(Debug)]
pub struct TopicTraffic {
    produced_batches: IntCounter,
    produced_records: IntCounter,
    produced_bytes: IntCounter,
    fetched_bytes: IntCounter,
    aborted_batches: IntCounter,
    aborted_bytes: IntCounter,
}

impl TopicTraffic {
    /// A batch was appended.
    pub fn produced(&self, records: u64, bytes: u64) {
        self.produced_batches.inc();
        self.produced_records.inc_by(records);
        self.produced_bytes.inc_by(bytes);
    }

    /// Bytes of batches were sent to a consumer.
    pub fn fetched(&self, bytes: u64) {
        self.fetched_bytes.inc_by(bytes);
    }

    /// Batches turned out to be in vain: their transaction was aborted.
    pub fn aborted(&self, batches: u64, bytes: u64) {
        self.aborted_batches.inc_by(batches);
        self.aborted_bytes.inc_by(bytes);
    }
}

#[derive(Debug)]
struct Families([IntCounterVec; 6]);

/// All topics' counters.
#[derive(Debug)]
pub(super) struct Traffic {
    families: Families,
    other: Arc<TopicTraffic>,
    known: RwLock<Known>,
    /// Rises when a topic may have found room for series of its own.
    generation: AtomicU64,
    dropped: IntCounter,
}

#[derive(Debug, Default)]
struct Known {
    own: BTreeMap<TopicName, Arc<TopicTraffic>>,
    /// Those that share one series.
    folded: BTreeSet<TopicName>,
}

impl Known {
    fn get(&self, name: &TopicName, other: &Arc<TopicTraffic>) -> Option<Arc<TopicTraffic>> {
        self.own.get(name).or_else(|| self.folded.contains(name).then_some(other)).map(Arc::clone)
    }
}

impl Families {
    fn of(&self, topic: &str) -> Result<TopicTraffic, Error> {
        let [batches, records, bytes, fetched, aborted_batches, aborted_bytes] = &self.0;
        let one = |family: &IntCounterVec| family.get_metric_with_label_values(&[topic]);
        Ok(TopicTraffic {
            produced_batches: one(batches)?,
            produced_records: one(records)?,
            produced_bytes: one(bytes)?,
            fetched_bytes: one(fetched)?,
            aborted_batches: one(aborted_batches)?,
            aborted_bytes: one(aborted_bytes)?,
        })
    }
}

impl Traffic {
    pub(super) fn new(table: &Table, dropped: IntCounter) -> Result<Self, Error> {
        let family = |name, help| table.open_counters(name, help, &["topic"]);
        let families = Families([
            family("produced_batches_total", "Batches appended")?,
            family("produced_records_total", "Records appended")?,
            family("produced_bytes_total", "Bytes of batches appended")?,
            family("fetched_bytes_total", "Bytes of batches sent to consumers")?,
            family("aborted_batches_total", "Batches whose transaction was aborted, since the start")?,
            family("aborted_bytes_total", "Bytes of batches whose transaction was aborted, since the start")?,
        ]);
        let other = Arc::new(families.of(OTHER)?);
        Ok(Self { families, other, known: RwLock::default(), generation: AtomicU64::new(0), dropped })
    }

    /// A topic's counters, until [`generation`](Self::generation) is another.
    pub(super) fn topic(&self, name: &TopicName) -> Arc<TopicTraffic> {
        if let Some(known) = self.known.read().get(name, &self.other) {
            return known;
        }
        let mut known = self.known.write();
        if let Some(known) = known.get(name, &self.other) {
            return known;
        }
        if known.own.len() < CAP
            && let Ok(made) = self.families.of(name.as_str())
        {
            let made = Arc::new(made);
            known.own.insert(name.clone(), Arc::clone(&made));
            return made;
        }
        known.folded.insert(name.clone());
        self.dropped.inc();
        Arc::clone(&self.other)
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Forgets topics that are gone; others that found no room may find some then.
    pub(super) fn keep(&self, exists: impl Fn(&TopicName) -> bool) {
        let is_gone = |known: &Known| known.own.keys().chain(&known.folded).any(|name| !exists(name));
        if !is_gone(&self.known.read()) {
            return;
        }
        let mut known = self.known.write();
        let gone: Vec<TopicName> = known.own.keys().filter(|name| !exists(name)).cloned().collect();
        for name in gone {
            known.own.remove(&name);
            self.remove(&name);
        }
        known.folded.clear();
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    fn remove(&self, name: &TopicName) {
        for family in &self.families.0 {
            // An error says that there was none.
            if family.remove_label_values(&[name.as_str()]).is_err() {
                return;
            }
        }
    }
}

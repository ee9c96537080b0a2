//! Topics within the ledger: made with their partitions, grown, set otherwise, deleted with everything that names them.

use std::sync::Arc;

use super::Ledger;
use super::offsets::OffsetKey;
use super::rows::{Marks, PartRow, RowKey, RowValue};
use crate::engine::catalog::{Catalog, Defaults, Planned, Refused, Topic, TopicSettings};
use crate::engine::txn::State;
use crate::engine::{PartId, Refusal, TopicId, TopicName, TransactionalId};

impl Ledger {
    /// Makes a topic that the catalog has allowed, with partitions never used before.
    pub fn make_topic(&mut self, id: TopicId, name: &str, planned: Planned) -> Vec<(PartId, PartRow)> {
        let created = self.make_parts(id, 0, planned.partitions);
        let parts = created.iter().map(|(part, _)| *part).collect();
        self.put_topic(Topic { id, name: TopicName::from(name), parts, settings: planned.settings });
        created
    }

    /// Gives a topic more partitions, never used before, behind those it has (M-234). Open transactions and whoever
    /// reads the others notice nothing.
    pub fn grow_topic(&mut self, topic: &Topic, added: i32) -> Vec<(PartId, PartRow)> {
        let created = self.make_parts(topic.id, topic.partition_count(), added);
        self.put_topic(topic.grown(created.iter().map(|(part, _)| *part)));
        created
    }

    /// Gives a topic other settings, which the catalog has allowed. True if they differ from those it had.
    pub fn set_topic(&mut self, topic: &Topic, settings: TopicSettings) -> bool {
        let differs = topic.settings != settings;
        if differs {
            self.put_topic(Topic { settings, ..topic.clone() });
        }
        differs
    }

    fn make_parts(&mut self, topic: TopicId, first: i32, count: i32) -> Vec<(PartId, PartRow)> {
        let marks = self.marks();
        let end = marks.next_part.saturating_add(i64::from(count));
        self.put_marks(Marks { next_part: end, ..marks });
        let mut created = Vec::new();
        for (index, part) in (first..).zip((marks.next_part..end).map(PartId)) {
            let row = PartRow { topic, index, log_start: 0, transactional: false, point: None };
            self.put_part(part, row);
            created.push((part, row));
        }
        created
    }

    fn put_topic(&mut self, topic: Topic) {
        self.rows.put(RowKey::Topic(topic.id), Some(RowValue::Topic(topic.encode())));
        self.next_catalog = Some(Arc::new(self.catalog().with(topic)));
    }

    /// Deletes a topic: its partitions, every group's offsets on them, and what open transactions staged for them
    /// (T-824, O-645). Open transactions keep the partitions in their lists; a partition that is gone counts as sealed
    /// and owes no marker.
    pub fn delete_topic(&mut self, topic: &Topic) {
        for part in &topic.parts {
            self.remove_part(*part);
        }
        let gone = |part: &PartId| topic.parts.contains(part);
        let offsets: Vec<OffsetKey> = self.offset_keys(gone);
        for key in offsets {
            self.forget_offset(&key);
        }
        let carriers: Vec<(TransactionalId, OffsetKey)> = (self.txns.iter())
            .filter_map(|(id, txn)| match &txn.state {
                State::Ongoing(ongoing) => Some((id, ongoing)),
                State::Empty | State::Ended { .. } => None,
            })
            .flat_map(|(id, ongoing)| ongoing.staged.keys().map(move |key| (id.clone(), key.clone())))
            .filter(|(_, key)| gone(&key.1))
            .collect();
        for (_, key) in carriers {
            self.unstage_key(&key);
        }
        self.rows.put(RowKey::Topic(topic.id), None);
        self.next_catalog = Some(Arc::new(self.catalog().without(&topic.name)));
    }

    /// What a Metadata request that may create topics leads to, judged on the state of this turn.
    ///
    /// # Errors
    /// As the catalog says.
    pub fn plan_topic(
        &self,
        spec: &crate::engine::catalog::CreateTopic,
        defaults: &Defaults,
    ) -> Result<Planned, Refused> {
        self.catalog().check_create(spec, defaults)
    }

    /// A topic by name.
    ///
    /// # Errors
    /// As the catalog says.
    pub fn deletable(&self, name: &str) -> Result<Arc<Topic>, Refusal> {
        self.catalog().check_delete(name).map(Arc::clone).map_err(|refused| refused.refusal)
    }

    /// A topic by id.
    ///
    /// # Errors
    /// As the catalog says.
    pub fn deletable_by_id(&self, id: TopicId) -> Result<Arc<Topic>, Refusal> {
        self.catalog().check_delete_by_id(id).map(Arc::clone).map_err(|refused| refused.refusal)
    }

    /// The catalog that the store has.
    #[must_use]
    pub fn stored_catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }
}

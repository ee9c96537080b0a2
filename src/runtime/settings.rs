//! The settings of topics as their batches are held to them, worked out once and not for every request.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::engine::TopicId;
use crate::engine::catalog::{BrokerLevels, Catalog, LogSettings, Topic};

/// Entries beyond the catalog's topics before those of deleted ones are dropped.
const SLACK: usize = 64;

/// What was worked out, by topic.
#[derive(Default)]
pub(super) struct InEffect(RwLock<BTreeMap<TopicId, Known>>);

/// A topic as it was, and its settings.
type Known = (Arc<Topic>, Arc<LogSettings>);

impl InEffect {
    /// The settings in effect of this very topic: a changed topic is another value.
    pub(super) fn of(
        &self,
        topic: &Arc<Topic>,
        levels: &BrokerLevels,
        catalog: impl FnOnce() -> Arc<Catalog>,
    ) -> Arc<LogSettings> {
        if let Some((known, settings)) = self.0.read().get(&topic.id)
            && Arc::ptr_eq(known, topic)
        {
            return Arc::clone(settings);
        }
        let settings = Arc::new(topic.settings.in_effect(levels));
        let mut all = self.0.write();
        all.insert(topic.id, (Arc::clone(topic), Arc::clone(&settings)));
        let catalog = catalog();
        if all.len() > catalog.len().saturating_add(SLACK) {
            all.retain(|id, _| catalog.topic_by_id(*id).is_some());
        }
        settings
    }
}

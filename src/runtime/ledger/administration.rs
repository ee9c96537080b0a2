//! Steps that administrators ask for: groups looked at and deleted, topics grown and set otherwise.

use std::sync::Arc;

use super::{CatalogChange, Effects, LedgerOwner, Then};
use crate::engine::catalog::{ChangeConfigs, GrowTopic};
use crate::engine::{GroupId, PartId, ReplyTo};
use crate::runtime::post::Answer;

impl LedgerOwner {
    /// DescribeGroups, each id by itself.
    pub(super) fn describe_groups(&self, ids: &[GroupId]) -> Answer {
        let one = |id: &GroupId| (id.clone(), self.ledger.groups.get(id).map(|group| group.describe()));
        Answer::Groups(ids.iter().map(one).collect())
    }

    /// ListGroups.
    pub(super) fn list_groups(&self) -> Answer {
        Answer::GroupList(self.ledger.groups.iter().map(|(id, group)| (id.clone(), group.listing())).collect())
    }

    /// DeleteGroups, each id by itself.
    pub(super) fn delete_groups(&mut self, to: ReplyTo, ids: &[GroupId], effects: &mut Effects) {
        let deleted = ids.iter().map(|id| self.ledger.delete_group(id)).collect();
        effects.answer(to, Answer::Each(deleted));
    }

    /// OffsetDelete.
    pub(super) fn delete_offsets(&mut self, to: ReplyTo, (id, parts): (&GroupId, &[PartId]), effects: &mut Effects) {
        let deleted = self.ledger.delete_offsets(id, parts);
        effects.answer(to, deleted.map_or_else(Answer::Refused, Answer::Each));
    }

    /// CreatePartitions: the request as a whole is judged, then each topic that passed grows.
    pub(super) fn grow_topics(&mut self, to: ReplyTo, specs: &[GrowTopic], validate_only: bool, effects: &mut Effects) {
        let planned = self.ledger.catalog().plan_grow(specs, &self.settings.topics);
        let mut created = Vec::new();
        let results = planned.into_iter().map(|(name, planned)| {
            let grown = planned.map(|added| {
                let topic = self.ledger.catalog().topic(&name).map(Arc::clone);
                if let Some(topic) = topic.filter(|_| !validate_only) {
                    created.extend(self.ledger.grow_topic(&topic, added));
                }
            });
            (name, grown)
        });
        let results = results.collect();
        if !created.is_empty() {
            effects.then.push(Then::Catalog(CatalogChange { created, ..CatalogChange::default() }));
        }
        effects.then.push(Then::Answer(to, Answer::Grown(results)));
    }

    /// AlterConfigs and IncrementalAlterConfigs: the request as a whole is judged, then each topic that passed is set.
    pub(super) fn change_configs(
        &mut self,
        to: ReplyTo,
        resources: &[ChangeConfigs],
        validate_only: bool,
        effects: &mut Effects,
    ) {
        let planned = self.ledger.catalog().plan_change(resources, &self.settings.topics);
        let mut changed = Vec::new();
        let results = planned.into_iter().map(|planned| {
            planned.map(|change| {
                if let Some((topic, settings)) = change.filter(|_| !validate_only)
                    && self.ledger.set_topic(&topic, settings)
                {
                    changed.push(topic.id);
                }
            })
        });
        let results = results.collect();
        if !changed.is_empty() {
            effects.then.push(Then::Catalog(CatalogChange { changed, ..CatalogChange::default() }));
        }
        effects.then.push(Then::Answer(to, Answer::Changed(results)));
    }
}

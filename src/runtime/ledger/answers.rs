//! Steps of groups, topics and tools.

use super::{CatalogChange, Effects, LedgerOwner, Then};
use crate::engine::catalog::{CreateTopic, Refused, Topic};
use crate::engine::group::STATE_NAMES;
use crate::engine::ledger::groups::Answers;
use crate::engine::ledger::show::Shown;
use crate::engine::txn::LAST_EPOCH;
use crate::engine::txn::work::Stage;
use crate::engine::{GroupId, Now, PartId, Refusal, ReplyTo, TopicId, TopicName, TransactionalId};
use crate::runtime::post::{
    Answer, CatalogNews, Command, CommitOffsets, Created, CreatedTopic, LedgerGauges, Post, Show, TopicKey,
};

/// Offsets that one question gets: others have their turn in between.
pub(in crate::runtime) const OFFSETS_AT_ONCE: usize = 4_096;
/// Ids with fewer epochs left than this are told of.
const FEW_EPOCHS: i16 = 1_000;

impl LedgerOwner {
    pub(super) fn ask_group(&mut self, to: ReplyTo, command: &Command, now: Now, effects: &mut Effects) {
        let answers = match command {
            Command::Join(id, join) => self.ledger.join(id, join, (to, &self.settings.groups), now),
            Command::Sync(id, sync) => self.ledger.sync(id, sync, to, now),
            Command::Heartbeat(id, claim) => self.ledger.heartbeat(id, claim, to, now),
            Command::Leave(id, leaving) => self.ledger.leave(id, leaving, to, now),
            Command::CommitOffsets(commit) => {
                let CommitOffsets { group, claim, offsets, retention_ms } = commit;
                let done = self.ledger.commit_offsets(group, claim, (offsets, *retention_ms), now);
                effects.answer_result(to, done);
                return;
            }
            Command::FetchOffsets { group, parts, require_stable } => {
                let offsets = self.fetch_offsets(group, parts.as_deref(), *require_stable);
                effects.answer(to, Answer::Offsets(offsets));
                return;
            }
            Command::InitProducer { .. }
            | Command::Add { .. }
            | Command::Verify { .. }
            | Command::StageOffsets(_)
            | Command::EndTxn { .. }
            | Command::WriteMarkers { .. }
            | Command::AbortTxn { .. }
            | Command::Show(_)
            | Command::DeleteGroups(_)
            | Command::DeleteOffsets(..)
            | Command::CreateTopics(_)
            | Command::DeleteTopics(_)
            | Command::GrowTopics { .. }
            | Command::ChangeConfigs { .. } => return,
        };
        effects.answer_group(answers);
    }

    fn fetch_offsets(
        &self,
        group: &GroupId,
        parts: Option<&[PartId]>,
        require_stable: bool,
    ) -> Vec<(PartId, crate::engine::ledger::offsets::Seen)> {
        let all;
        let parts = match parts {
            Some(parts) => parts,
            None => {
                all = self.ledger.parts_with_offsets(group);
                &all
            }
        };
        let seen = |part: &PartId| (*part, self.ledger.seen_offset(&(group.clone(), *part), require_stable));
        parts.iter().map(seen).collect()
    }

    /// What tools, operators and metrics are shown.
    pub(super) fn shown(&self, show: &Show, now: Now) -> Answer {
        match show {
            Show::Txns(ids) => self.describe_txns(ids),
            Show::AllTxns => Answer::Txns(self.ledger.describe_txns().map(Ok).collect()),
            Show::Find(find) => {
                let (total, found) = self.ledger.find_txns(find, now);
                Answer::Found(total, found)
            }
            Show::Owners(producers) => {
                let owners = producers.iter().filter_map(|producer| self.ledger.owner_of(*producer).cloned());
                self.describe_txns(&owners.collect::<Vec<_>>())
            }
            Show::Offsets(from) => Answer::SeenOffsets(self.ledger.seen_offsets(from.as_ref(), OFFSETS_AT_ONCE)),
            Show::Groups(ids) => self.describe_groups(ids),
            Show::AllGroups => self.list_groups(),
            Show::Gauges => Answer::Gauges(Box::new(self.gauges(now))),
        }
    }

    /// DescribeTransactions, each id by itself.
    fn describe_txns(&self, ids: &[TransactionalId]) -> Answer {
        let one = |id: &TransactionalId| self.ledger.describe_txn(id).map_err(|refusal| (id.clone(), refusal));
        Answer::Txns(ids.iter().map(one).collect())
    }

    /// The ledger in figures.
    fn gauges(&self, now: Now) -> LedgerGauges {
        let mut gauges = LedgerGauges::default();
        for (id, txn) in self.ledger.txns.iter() {
            gauges.ids = gauges.ids.saturating_add(1);
            if LAST_EPOCH.saturating_sub(txn.producer.epoch) < FEW_EPOCHS {
                gauges.exhausted_soon = gauges.exhausted_soon.saturating_add(1);
            }
            let shown = self.ledger.shown(id, txn);
            let place = Shown::ALL.iter().zip(gauges.txns.iter_mut()).find(|(state, _)| **state == shown);
            if let Some((_, place)) = place {
                *place = place.saturating_add(1);
            }
            if let Some(ongoing) = txn.ongoing() {
                let oldest = gauges.oldest_open_wall_ms.unwrap_or(i64::MAX).min(ongoing.started_wall_ms);
                gauges.oldest_open_wall_ms = Some(oldest);
                let age_ms = now.mono_ms.saturating_sub(ongoing.since_mono_ms);
                gauges.oldest_open_age_ms = gauges.oldest_open_age_ms.max(age_ms);
            }
        }
        for (_, owed) in self.ledger.debts() {
            let open = owed.parts.values().filter(|part| part.stage != Stage::Synced).count();
            gauges.markers_pending = gauges.markers_pending.saturating_add(count(open));
            if open > 0 {
                gauges.oldest_marker_ms = gauges.oldest_marker_ms.max(now.mono_ms.saturating_sub(owed.since_mono_ms));
            }
        }
        gauges.pending_offsets = count(self.ledger.pending_offsets());
        for (_, group) in self.ledger.groups.iter() {
            let place = STATE_NAMES.iter().zip(gauges.groups.iter_mut()).find(|(name, _)| **name == group.state_name());
            if let Some((_, place)) = place {
                *place = place.saturating_add(1);
            }
            gauges.members = gauges.members.saturating_add(count(group.member_count()));
        }
        gauges
    }

    /// CreateTopics: the request as a whole is judged, then each topic that passed is made.
    pub(super) fn create_topics(&mut self, to: ReplyTo, specs: &[(CreateTopic, TopicId)], effects: &mut Effects) {
        let specs_only: Vec<CreateTopic> = specs.iter().map(|(spec, _)| spec.clone()).collect();
        let planned = self.ledger.catalog().plan_create(&specs_only, |_| Ok(()), &self.settings.topics);
        let mut created = Vec::new();
        let mut results = Vec::with_capacity(planned.len());
        for (name, plan) in planned {
            results.push(self.create(specs, &name, plan, &mut created));
        }
        if !created.is_empty() {
            effects.then.push(Then::Catalog(CatalogChange { created, ..CatalogChange::default() }));
        }
        effects.then.push(Then::Answer(to, Answer::Created(results)));
    }

    /// DeleteTopics, each key by itself.
    pub(super) fn delete_topics(&mut self, to: ReplyTo, keys: &[TopicKey], effects: &mut Effects) {
        let mut deleted = Vec::new();
        let results = keys.iter().map(|key| self.delete(key, &mut deleted)).collect();
        if !deleted.is_empty() {
            effects.then.push(Then::Catalog(CatalogChange { deleted, ..CatalogChange::default() }));
        }
        effects.then.push(Then::Answer(to, Answer::Deleted(results)));
    }

    fn create(
        &mut self,
        specs: &[(CreateTopic, TopicId)],
        name: &str,
        plan: Result<crate::engine::catalog::Planned, Refused>,
        created: &mut Vec<(PartId, crate::engine::ledger::rows::PartRow)>,
    ) -> Created {
        let result = plan.map_err(|refused| (refused.refusal, refused.message)).and_then(|planned| {
            let (spec, id) = specs.iter().find(|(spec, _)| spec.name == name).ok_or_else(unnamed)?;
            let partitions = planned.partitions;
            if !spec.validate_only {
                created.extend(self.ledger.make_topic(*id, name, planned));
            }
            Ok(CreatedTopic { name: TopicName::from(name), id: *id, partitions })
        });
        (name.to_owned(), result)
    }

    fn delete(&mut self, key: &TopicKey, deleted: &mut Vec<PartId>) -> Result<(TopicId, TopicName), Refusal> {
        let topic = match key {
            TopicKey::Name(name) => self.ledger.deletable(name.as_str())?,
            TopicKey::Id(id) => self.ledger.deletable_by_id(*id)?,
        };
        let topic: &Topic = &topic;
        self.ledger.delete_topic(topic);
        deleted.extend(topic.parts.iter().copied());
        Ok((topic.id, topic.name.clone()))
    }

    /// The catalog as stored, to everyone; after the flush, so that nobody sees a topic that a power cut takes back.
    pub(super) fn catalog_news(&self, change: CatalogChange) -> Post {
        let CatalogChange { created, deleted, changed } = change;
        let catalog = std::sync::Arc::clone(self.ledger.stored_catalog());
        Post::Catalog(CatalogNews { catalog, created, deleted, changed })
    }
}

fn unnamed() -> (Refusal, String) {
    (Refusal::InvalidRequest, "The topic is not in the request.".to_owned())
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

impl Effects {
    pub(super) fn answer_group(&mut self, answers: Answers) {
        let post = |(to, answer)| Post::Answer(to, Answer::Group(Box::new(answer)));
        self.held.extend(answers.into_iter().map(post));
    }
}

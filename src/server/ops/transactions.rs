//! Transactions as operators see them, and what operators may do to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Ops;
use super::gauges::{held_ms, holds_back};
use crate::engine::catalog::Catalog;
use crate::engine::ledger::show::{Described, Find};
use crate::engine::{Now, PartId, Refusal, TransactionalId};
use crate::http::v1::{
    Acted, Action, Blocked, Client, Filter, Holder, NotActed, Page, TopicPartition, Transaction, Who,
};
use crate::metrics::OperatorAction;
use crate::runtime::partition::published::{OldestOpen, Published};

/// Blocked partitions that are shown; the others are counted.
const BLOCKED_SHOWN: usize = 1_000;

impl Ops {
    pub(super) async fn list(&self, filter: Filter) -> Option<Page<Transaction>> {
        let Filter { states, prefix, open_longer_than_ms, limit } = filter;
        let (total, found) = self.broker.find_txns(Find { states, prefix, open_longer_than_ms, limit }).await.ok()?;
        let (catalog, now) = (self.broker.catalog(), self.broker.clock().now());
        let items = found.iter().map(|described| self.transaction_of(described, &catalog, now)).collect();
        Some(Page { total, items })
    }

    pub(super) async fn show(&self, id: String) -> Result<Transaction, NotActed> {
        let ids = vec![TransactionalId::from(id.as_str())];
        let described = self.broker.describe_txns(ids).await.map_err(unavailable)?.into_iter().next();
        let described = described.and_then(Result::ok).ok_or(NotActed::Unknown)?;
        Ok(self.transaction_of(&described, &self.broker.catalog(), self.broker.clock().now()))
    }

    fn transaction_of(&self, described: &Described, catalog: &Catalog, now: Now) -> Transaction {
        let open = described.deadline_mono_ms;
        let started = Some(described.started_wall_ms).filter(|started| *started >= 0);
        Transaction {
            transactional_id: described.id.to_string(),
            state: described.state.name().to_owned(),
            producer_id: described.producer.id,
            producer_epoch: described.producer.epoch,
            client: self.client_of(&described.id),
            started_unix_ms: started,
            age_ms: open.and(started).map(|started| now.wall_ms.saturating_sub(started).max(0)),
            timeout_ms: described.timeout_ms,
            time_left_ms: open.map(|deadline| deadline.saturating_sub(now.mono_ms).max(0)),
            partitions: described.parts.iter().filter_map(|part| named(catalog, *part)).collect(),
            groups: described.groups.iter().map(ToString::to_string).collect(),
        }
    }

    fn client_of(&self, id: &TransactionalId) -> Option<Client> {
        let caller = self.broker.caller(id)?;
        let address = caller.address.to_string();
        Some(Client { client_id: caller.client_id, address, last_joined_unix_ms: caller.seen_wall_ms })
    }

    /// Every partition whose readers are held back, and by whom: the producer of its earliest open transaction, by the view
    /// that readers go by. `None` while it cannot be said whose producers those are.
    pub(super) async fn held_back(&self) -> Option<Page<Blocked>> {
        let mut held: Vec<(PartId, Published)> = (self.broker.router().partitions.all().into_iter())
            .map(|(part, slot)| (part, slot.shared.published()))
            .filter(|(_, view)| holds_back(view))
            .collect();
        let since = |view: &Published| view.oldest_open.map_or(i64::MAX, |open| open.started_wall_ms);
        held.sort_by_key(|(part, view)| (since(view), *part));
        let total = held.len();
        held.truncate(BLOCKED_SHOWN);
        let producers: BTreeSet<i64> =
            held.iter().filter_map(|(_, view)| view.oldest_open.map(|open| open.producer.id)).collect();
        let owners = self.broker.describe_owners(producers.into_iter().collect()).await.ok()?;
        let owners: BTreeMap<i64, Described> =
            owners.into_iter().map(|described| (described.producer.id, described)).collect();
        let (catalog, now) = (self.broker.catalog(), self.broker.clock().now());
        let items = held.into_iter().filter_map(|(part, view)| {
            let place = named(&catalog, part)?;
            let holder = view.oldest_open.map(|open| {
                // Another transaction of the id, or none, says nothing about this one: it hangs.
                let described = owners.get(&open.producer.id).filter(|described| described.parts.contains(&part));
                self.holder(open, described, now)
            });
            Some(Blocked {
                place,
                last_stable_offset: view.last_stable,
                watermark: view.watermark,
                held_records: view.watermark.saturating_sub(view.last_stable),
                held_ms: held_ms(&view, now.wall_ms),
                holder,
            })
        });
        Some(Page { total, items: items.collect() })
    }

    fn holder(&self, open: OldestOpen, described: Option<&Described>, now: Now) -> Holder {
        let began = described.map(|described| described.started_wall_ms).filter(|began| *began >= 0);
        let started = began.unwrap_or(open.started_wall_ms);
        let deadline = described.and_then(|described| described.deadline_mono_ms);
        Holder {
            transactional_id: described.map(|described| described.id.to_string()),
            state: described.map(|described| described.state.name().to_owned()),
            producer_id: open.producer.id,
            producer_epoch: open.producer.epoch,
            client: described.and_then(|described| self.client_of(&described.id)),
            started_unix_ms: started,
            age_ms: now.wall_ms.saturating_sub(started).max(0),
            timeout_ms: described.map(|described| described.timeout_ms),
            time_left_ms: deadline.map(|deadline| deadline.saturating_sub(now.mono_ms).max(0)),
        }
    }

    /// Does it, and says who asked for it, and what came of it. To be run to its end though who asked has gone.
    pub(super) async fn carry_out(&self, action: Action, id: String, who: Who) -> Result<Acted, NotActed> {
        let (name, Who { operator, address }) = (action.name(), who);
        tracing::warn!(
            target: "oncelog::audit", action = name, transactional_id = ?id, ?operator, address,
            "asked for by an operator"
        );
        let result = self.act_on(action, &id).await;
        match &result {
            Ok(Acted { fenced, done, transaction, .. }) => {
                let (producer_id, epoch) = (transaction.producer_id, transaction.producer_epoch);
                tracing::warn!(
                    target: "oncelog::audit", action = name, transactional_id = ?id, ?operator, address, producer_id,
                    epoch, fenced, done, "carried out for an operator"
                );
            }
            Err(why) => tracing::warn!(
                target: "oncelog::audit", action = name, transactional_id = ?id, ?operator, address, ?why,
                "refused to an operator"
            ),
        }
        result
    }

    async fn act_on(&self, action: Action, id: &str) -> Result<Acted, NotActed> {
        let key = TransactionalId::from(id);
        let before = self.show(id.to_owned()).await?;
        let max_timeout_ms = i32::try_from(self.config.transactions.max_timeout_ms).unwrap_or(i32::MAX);
        let (result, counted) = match action {
            Action::Abort => (self.broker.abort_txn(key).await, OperatorAction::Abort),
            Action::Fence => (self.broker.fence_owner(key, max_timeout_ms).await, OperatorAction::Fence),
        };
        let after = self.show(id.to_owned()).await?;
        let fenced = (after.producer_id, after.producer_epoch) != (before.producer_id, before.producer_epoch);
        match result {
            Ok(()) => {}
            // What is decided is done, sooner or later, though its markers take longer than anybody waits.
            Err(Refusal::ConcurrentTransactions | Refusal::KafkaStorageError) if fenced => {}
            Err(refusal) => return Err(not_acted(action, refusal)),
        }
        self.broker.metrics().operator_acted(counted);
        Ok(Acted { action: action.name().to_owned(), fenced, done: result.is_ok(), transaction: after })
    }
}

fn unavailable(refusal: Refusal) -> NotActed {
    NotActed::Unavailable(format!("the ledger does not answer: {refusal}"))
}

fn not_acted(action: Action, refusal: Refusal) -> NotActed {
    if refusal == Refusal::TransactionalIdNotFound {
        NotActed::Unknown
    } else if refusal == Refusal::InvalidTxnState {
        NotActed::Conflict(format!("no transaction is open: there is nothing to {}", action.name()))
    } else if refusal == Refusal::ConcurrentTransactions {
        NotActed::Conflict("it is being ended already, and takes long".to_owned())
    } else {
        NotActed::Unavailable(format!("the ledger refused: {refusal}"))
    }
}

fn named(catalog: &Catalog, part: PartId) -> Option<TopicPartition> {
    let (topic, partition) = catalog.part(part)?;
    Some(TopicPartition { topic: Arc::clone(topic).name.to_string(), partition })
}

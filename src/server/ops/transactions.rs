//! Transactions as operators see them, and what operators may do to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Ops;
use super::gauges::{held_ms, holds_back};
use crate::engine::catalog::Catalog;
use crate::engine::ledger::show::Described;
use crate::engine::partition::ProducerState;
use crate::engine::{Now, PartId, Refusal, TransactionalId};
use crate::http::v1::{
    Acted, Action, Blocked, Client, Filter, Holder, NotActed, Page, TopicPartition, Transaction, Who,
};
use crate::metrics::OperatorAction;
use crate::runtime::partition::published::Published;

/// Blocked partitions that are shown; the others are counted.
const BLOCKED_SHOWN: usize = 1_000;

impl Ops {
    pub(super) async fn list(&self, filter: Filter) -> Option<Page<Transaction>> {
        let described = self.broker.list_txns().await.ok()?;
        let (catalog, now) = (self.broker.catalog(), self.broker.clock().now());
        let mut found: Vec<Transaction> = (described.into_iter())
            .filter(|described| filter.takes(described.state.name(), described.id.as_str()))
            .map(|described| self.transaction_of(&described, &catalog, now))
            .filter(|transaction| filter.open_longer_than_ms.is_none_or(|ms| transaction.age_ms.unwrap_or(-1) > ms))
            .collect();
        // Whoever holds readers back for longest comes first.
        found.sort_by(|a, b| b.age_ms.cmp(&a.age_ms).then_with(|| a.transactional_id.cmp(&b.transactional_id)));
        let total = found.len();
        found.truncate(filter.limit);
        Some(Page { total, items: found })
    }

    pub(super) async fn show(&self, id: String) -> Option<Transaction> {
        let ids = vec![TransactionalId::from(id.as_str())];
        let described = self.broker.describe_txns(ids).await.ok()?.into_iter().next()?.ok()?;
        Some(self.transaction_of(&described, &self.broker.catalog(), self.broker.clock().now()))
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
        Some(Client { client_id: caller.client_id, address, last_seen_unix_ms: caller.seen_wall_ms })
    }

    /// Every partition whose readers are held back, and by whom: the producer of its earliest open transaction.
    pub(super) async fn held_back(&self) -> Page<Blocked> {
        let mut held: Vec<(PartId, Published)> = (self.broker.router().partitions.all().into_iter())
            .map(|(part, slot)| (part, slot.shared.published()))
            .filter(|(_, view)| holds_back(view))
            .collect();
        held.sort_by_key(|(part, view)| (view.oldest_open_wall_ms.unwrap_or(i64::MAX), *part));
        let total = held.len();
        held.truncate(BLOCKED_SHOWN);
        let known: BTreeMap<i64, Described> = match (held.is_empty(), self.broker.list_txns().await) {
            (false, Ok(all)) => all.into_iter().map(|described| (described.producer.id, described)).collect(),
            (true, _) | (_, Err(_)) => BTreeMap::new(),
        };
        let catalog = self.broker.catalog();
        let mut items = Vec::with_capacity(held.len());
        for (part, view) in held {
            if let Some(place) = named(&catalog, part) {
                let producers = self.broker.describe_producers(part).await.unwrap_or_default();
                items.push(self.blocked_of(place, &view, earliest(&producers), &known));
            }
        }
        Page { total, items }
    }

    fn blocked_of(
        &self,
        place: TopicPartition,
        view: &Published,
        producer: Option<&ProducerState>,
        known: &BTreeMap<i64, Described>,
    ) -> Blocked {
        let now = self.broker.clock().now();
        let age_ms = held_ms(view, now.wall_ms);
        let holder = producer.map(|producer| {
            let described = known.get(&producer.id);
            Holder {
                transactional_id: described.map(|described| described.id.to_string()),
                state: described.map(|described| described.state.name().to_owned()),
                producer_id: producer.id,
                producer_epoch: producer.epoch,
                client: described.and_then(|described| self.client_of(&described.id)),
                started_unix_ms: view.oldest_open_wall_ms,
                age_ms,
                timeout_ms: described.map(|described| described.timeout_ms),
                time_left_ms: described
                    .and_then(|described| described.deadline_mono_ms)
                    .map(|deadline| deadline.saturating_sub(now.mono_ms).max(0)),
            }
        });
        Blocked {
            place,
            last_stable_offset: view.last_stable,
            watermark: view.watermark,
            held_records: view.watermark.saturating_sub(view.last_stable),
            held_ms: age_ms,
            holder,
        }
    }

    /// Does it, and says who asked for it, whatever comes of it.
    pub(super) async fn carry_out(&self, action: Action, id: String, who: Who) -> Result<Acted, NotActed> {
        let key = TransactionalId::from(id.as_str());
        let before = self.show(id.clone()).await;
        let (result, counted) = match action {
            Action::Abort => (self.broker.abort_txn(key).await, OperatorAction::Abort),
            Action::Fence => (self.broker.fence_owner(key).await, OperatorAction::Fence),
        };
        let (old_epoch, producer_id) = before.map_or((-1, -1), |before| (before.producer_epoch, before.producer_id));
        let (operator, address) = (who.operator, who.address);
        match result {
            Ok(()) => {
                self.broker.metrics().operator_acted(counted);
                tracing::warn!(
                    target: "oncelog::audit",
                    action = action.name(), transactional_id = %id, %operator, %address, producer_id, old_epoch,
                    "done for an operator"
                );
                Ok(Acted { action: action.name().to_owned(), transaction: self.show(id).await })
            }
            Err(refusal) => {
                tracing::warn!(
                    target: "oncelog::audit",
                    action = action.name(), transactional_id = %id, %operator, %address, error = %refusal,
                    "refused to an operator"
                );
                Err(not_acted(action, refusal))
            }
        }
    }
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

fn earliest(producers: &[ProducerState]) -> Option<&ProducerState> {
    let open = producers.iter().filter(|producer| producer.current_txn_start.is_some());
    open.min_by_key(|producer| producer.current_txn_start)
}

fn named(catalog: &Catalog, part: PartId) -> Option<TopicPartition> {
    let (topic, partition) = catalog.part(part)?;
    Some(TopicPartition { topic: Arc::clone(topic).name.to_string(), partition })
}

//! Who may write transactional batches here: the coordinator's word, given before it answers an add (T-381 to T-383).

use std::collections::BTreeMap;

use crate::engine::{Producer, TransactionalId};

/// The coordinator's permission to write one transaction to this partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Whose transaction it is; a request that names another id is refused (T-316 R).
    pub txn: TransactionalId,
    /// The owner of that id.
    pub producer: Producer,
    /// Which transaction of the producer; rises with each.
    pub txn_no: u64,
    /// Number of the commit whose flush makes the add durable. The transaction's first Produce is acknowledged only
    /// after it.
    pub row: u64,
}

/// A grant and whether it still stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Permission {
    pub(super) grant: Grant,
    pub(super) state: PermissionState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PermissionState {
    /// Batches of the transaction are taken.
    Given,
    /// How the transaction ends is being decided: what comes now is not part of it.
    Sealed,
}

/// One grant for each producer id.
#[derive(Debug, Clone, Default)]
pub(super) struct Grants(BTreeMap<i64, Permission>);

impl Grants {
    pub(super) fn get(&self, producer_id: i64) -> Option<&Permission> {
        self.0.get(&producer_id)
    }

    /// Takes a grant. One of the same or an earlier transaction than the known changes nothing, so a repeat cannot
    /// open what a seal has closed.
    pub(super) fn give(&mut self, grant: Grant) {
        let known = self.0.get(&grant.producer.id).map(|known| known.grant.txn_no);
        if known.is_none_or(|known| known < grant.txn_no) {
            self.0.insert(grant.producer.id, Permission { grant, state: PermissionState::Given });
        }
    }

    pub(super) fn set_state(&mut self, producer_id: i64, txn_no: u64, state: PermissionState) {
        if let Some(known) = self.0.get_mut(&producer_id).filter(|known| known.grant.txn_no == txn_no) {
            known.state = state;
        }
    }

    /// Takes back what a marker ends: the grant of the marker's transaction, and any of a lower epoch.
    pub(super) fn close(&mut self, marker: Producer, txn_no: Option<u64>) {
        let ends = |known: &Permission| txn_no == Some(known.grant.txn_no) || known.grant.producer.epoch < marker.epoch;
        if self.0.get(&marker.id).is_some_and(ends) {
            self.0.remove(&marker.id);
        }
    }
}

//! A start, before any listener opens: what decisions owe is written, what logs hold open is compared with the ledger,
//! permissions are given again. The same owners do the same work as later; only nobody is served yet (storage rule O).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::config::Durability;
use crate::engine::ledger::Ledger;
use crate::engine::ledger::recover::Adopted;
use crate::engine::ledger::rows::PartRow;
use crate::engine::partition::{Grant, MarkOrder};
use crate::engine::txn::work::{Owed, Stage};
use crate::engine::{Now, Offset, Outcome, PartId};
use crate::runtime::events::Event;
use crate::runtime::partition::load::Source;
use crate::runtime::partition::published::Shared;
use crate::runtime::partition::{PartitionOwner, Settings};
use crate::runtime::partitions::Partitions;
use crate::runtime::post::{LedgerLetter, MarkResult, PartLetter, Post};
use crate::store::StoreError;

/// What a start works on.
pub struct Start<'a> {
    /// The ledger as loaded; its rows are to be stored when this is over.
    pub ledger: &'a mut Ledger,
    /// What every partition's owner is told.
    pub settings: &'a Settings,
    /// Whether the process before stopped in order.
    pub clean: bool,
    /// Where a partition's files are.
    pub source: &'a dyn Fn(PartId, &PartRow) -> Option<Source>,
    /// Now.
    pub now: Now,
}

/// A partition opened by a start.
struct Opened {
    shared: Arc<Shared>,
    owner: PartitionOwner,
}

impl Start<'_> {
    /// Opens what must be open before anybody is served, and does what is owed. Other partitions are added unopened.
    ///
    /// # Errors
    /// `Broken`, `Full`. A damaged partition is no error: it is added out of service.
    pub fn run(mut self, partitions: &Partitions) -> Result<(), StoreError> {
        let needed = self.needed();
        let witnesses = self.witnesses();
        let mut opened = BTreeMap::new();
        let mut damaged = BTreeSet::new();
        let parts: Vec<(PartId, PartRow)> = self.ledger.all_parts().map(|(part, row)| (part, *row)).collect();
        for (part, row) in parts {
            let Some(mut source) = (self.source)(part, &row) else { continue };
            source.witness = witnesses.get(&part).copied().unwrap_or(0);
            if !needed.contains(&part) {
                partitions.add(part, source);
                continue;
            }
            let shared = Arc::new(Shared::unloaded());
            let settings = self.settings.clone();
            match PartitionOwner::load(part, source.clone(), settings, Arc::clone(&shared), self.now) {
                Ok(owner) => {
                    opened.insert(part, Opened { shared, owner });
                }
                Err(StoreError::Damaged(why)) => {
                    partitions.add_damaged(part, why, source);
                    damaged.insert(part);
                }
                Err(error @ (StoreError::Broken(_) | StoreError::Full(_))) => return Err(error),
            }
        }
        self.pay(&mut opened, &damaged)?;
        self.adopt(&mut opened)?;
        self.grant(&mut opened)?;
        for (part, Opened { shared, owner }) in opened {
            partitions.add_loaded(part, shared, owner);
        }
        Ok(())
    }

    /// Partitions that must be open first: those that owe a marker, those of open transactions, and after an unclean
    /// stop all that ever were part of one, for their logs may know of a transaction whose row was lost.
    fn needed(&self) -> BTreeSet<PartId> {
        let owed = self.ledger.debts().flat_map(|(_, owed)| owed.parts.keys().copied());
        let open = self.ledger.open_transactions().flat_map(|(_, _, ongoing)| ongoing.parts.iter().copied());
        let unclean = self.ledger.all_parts().filter(|(_, row)| row.transactional && !self.clean);
        owed.chain(open).chain(unclean.map(|(part, _)| part)).collect()
    }

    /// Log ends that commits have proved to be on disk.
    fn witnesses(&self) -> BTreeMap<PartId, Offset> {
        let mut ends: BTreeMap<PartId, Offset> = BTreeMap::new();
        // Without waiting for the disk a commit proves nothing about it.
        let proved = self.settings.durability == Durability::Strict;
        let commits = self.ledger.debts().filter(|(_, owed)| proved && owed.outcome == Outcome::Commit);
        for (part, owed) in commits.flat_map(|(_, owed)| owed.parts.iter()) {
            if owed.sealed_end < Offset::MAX {
                let end = ends.entry(*part).or_default();
                *end = (*end).max(owed.sealed_end);
            }
        }
        ends
    }

    /// Writes every owed marker, oldest decision first, and brings it to disk.
    fn pay(&mut self, opened: &mut BTreeMap<PartId, Opened>, damaged: &BTreeSet<PartId>) -> Result<(), StoreError> {
        let debts: Vec<(u64, Owed)> = self.ledger.debts().map(|(seq, owed)| (seq, owed.clone())).collect();
        for (seq, owed) in debts {
            for (part, state) in &owed.parts {
                let order = owed.order(state, self.settings.incarnation, true);
                let stage = match opened.get_mut(part) {
                    Some(opened) => mark(opened, seq, order, self.now)?,
                    None if damaged.contains(part) => Stage::Parked,
                    None => Stage::Synced,
                };
                self.ledger.set_stage(seq, *part, stage);
            }
            // In either mode a marker that a start wrote is on disk now; only parked ones stay owed.
            self.ledger.release_if_over(seq, false, self.now);
            if owed_done(self.ledger, seq) {
                self.ledger.forget_owed(seq);
            }
        }
        Ok(())
    }

    /// Compares every transaction that a log holds open with the ledger. One that nobody owns is closed, so that no
    /// last stable offset hangs on it.
    fn adopt(&mut self, opened: &mut BTreeMap<PartId, Opened>) -> Result<(), StoreError> {
        for (part, opened) in opened.iter_mut() {
            for producer in opened.owner.open_transactions() {
                let marker = match self.ledger.adopt(producer, *part, self.now) {
                    Adopted::Known | Adopted::Again => continue,
                    Adopted::Orphan { marker } => marker,
                };
                self.settings.events.say(&Event::Orphan { producer, part: *part });
                let order = MarkOrder {
                    producer: marker,
                    outcome: Outcome::Abort,
                    coordinator_epoch: self.settings.incarnation,
                    sealed_end: Offset::MAX,
                    txn_no: None,
                    redo: false,
                };
                mark(opened, u64::MAX, order, self.now)?;
            }
        }
        Ok(())
    }

    /// Lets every open transaction go on writing. Its row is on disk.
    fn grant(&mut self, opened: &mut BTreeMap<PartId, Opened>) -> Result<(), StoreError> {
        let open = self.ledger.open_transactions();
        let grants: Vec<(PartId, Grant)> = open
            .flat_map(|(id, txn, ongoing)| {
                let grant = Grant { txn: id.clone(), producer: txn.producer, txn_no: ongoing.number, row: 0 };
                ongoing.parts.iter().map(move |part| (*part, grant.clone()))
            })
            .collect();
        for (part, grant) in grants {
            if let Some(opened) = opened.get_mut(&part) {
                step(opened, vec![PartLetter::Grant(grant)], self.now)?;
            }
        }
        Ok(())
    }
}

fn owed_done(ledger: &Ledger, seq: u64) -> bool {
    ledger.debts().find(|(debt, _)| *debt == seq).is_some_and(|(_, owed)| owed.is_done())
}

/// Has one marker written and synced.
fn mark(opened: &mut Opened, seq: u64, order: MarkOrder, now: Now) -> Result<Stage, StoreError> {
    let posts = step(opened, vec![PartLetter::Mark(vec![(seq, order)])], now)?;
    let failed = posts.iter().any(|post| {
        matches!(post, Post::Ledger(LedgerLetter::Marked(_, _, MarkResult::Failed(_) | MarkResult::Parked)))
    });
    if failed {
        return Err(StoreError::Full(format!("partition {} has no room for a marker it owes", opened.owner.part().0)));
    }
    Ok(Stage::Synced)
}

/// One turn, and its sync, at once.
fn step(opened: &mut Opened, letters: Vec<PartLetter>, now: Now) -> Result<Vec<Post>, StoreError> {
    let turn = opened.owner.turn(letters, now)?;
    // What a start wrote is on disk before the debt is forgotten, however little is promised later.
    opened.owner.sync_written()?;
    let mut posts = turn.at_once;
    let mut next = turn.sync.and_then(|syncing| opened.shared.put_in_line(syncing));
    while let Some(syncing) = next {
        syncing.run()?;
        posts.extend(opened.shared.synced(syncing.end(), syncing.then));
        next = opened.shared.next_sync();
    }
    Ok(posts)
}

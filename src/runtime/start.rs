//! A start, before any listener opens: what decisions owe is written, what logs hold open is compared with the ledger,
//! permissions are given again. The same owners do the same work as later; only nobody is served yet (storage rule O).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::config::Durability;
use crate::engine::ledger::Ledger;
use crate::engine::ledger::recover::Adopted;
use crate::engine::ledger::rows::PartRow;
use crate::engine::partition::{Grant, MarkOrder};
use crate::engine::txn::work::{Owed, Stage, after_failure};
use crate::engine::{Now, Offset, Outcome, PartId, Producer};
use crate::metrics::EndReason;
use crate::runtime::events::Event;
use crate::runtime::partition::load::Source;
use crate::runtime::partition::place::{Marked, marked, orphan};
use crate::runtime::partition::published::Shared;
use crate::runtime::partition::{PartitionOwner, Settings};
use crate::runtime::partitions::{Owes, Partitions};
use crate::runtime::post::PartLetter;
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
    /// Markers there was no room for.
    owes: Owes,
}

/// What a start made of the partitions that must be open first.
#[derive(Default)]
struct Found {
    opened: BTreeMap<PartId, Opened>,
    /// Out of service.
    damaged: BTreeSet<PartId>,
    /// There was no room to open them: where they are, and what they owe.
    unopened: BTreeMap<PartId, (Source, Owes)>,
}

impl Start<'_> {
    /// Opens what must be open before anybody is served, and does what is owed. Other partitions are added unopened.
    ///
    /// # Errors
    /// `Broken`. A damaged partition is no error: it is added out of service. Nor is one that there is no room for: it is
    /// added so that nobody is served before what it owes is written.
    pub fn run(mut self, partitions: &Partitions) -> Result<(), StoreError> {
        let mut found = self.open(partitions)?;
        if !self.clean {
            let (opened, damaged) = (found.opened.len(), found.damaged.len());
            let bytes = self.settings.events.metrics().log_verified_bytes();
            tracing::info!(
                opened,
                damaged,
                bytes,
                "logs that may hold open transactions verified after an unclean end"
            );
        }
        self.pay(&mut found, partitions)?;
        self.adopt(&mut found, partitions)?;
        self.grant(&mut found.opened)?;
        for (part, Opened { shared, owner, owes }) in found.opened {
            tell_owing(part, &owes);
            partitions.add_owing(part, shared, owner, owes);
        }
        for (part, (source, owes)) in found.unopened {
            tell_owing(part, &owes);
            let here = self.ledger.open_transactions().filter(|(_, _, ongoing)| ongoing.parts.contains(&part));
            let known = here.map(|(_, txn, _)| txn.producer).collect();
            partitions.add_unopened(part, source, (known, owes));
        }
        Ok(())
    }

    fn open(&self, partitions: &Partitions) -> Result<Found, StoreError> {
        let needed = self.needed();
        let witnesses = self.witnesses();
        let mut found = Found::default();
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
                    owner.show();
                    found.opened.insert(part, Opened { shared, owner, owes: Vec::new() });
                }
                Err(StoreError::Damaged(why)) => {
                    partitions.add_damaged(part, why, source);
                    found.damaged.insert(part);
                }
                Err(StoreError::Full(why)) => {
                    tracing::error!(part = part.0, why, "no room to open a partition that may hold transactions");
                    found.unopened.insert(part, (source, Vec::new()));
                }
                Err(error @ StoreError::Broken(_)) => return Err(error),
            }
        }
        Ok(found)
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
    fn pay(&mut self, found: &mut Found, partitions: &Partitions) -> Result<(), StoreError> {
        let debts: Vec<(u64, Owed)> = self.ledger.debts().map(|(seq, owed)| (seq, owed.clone())).collect();
        for (seq, owed) in debts {
            for (part, state) in &owed.parts {
                let order = owed.order(state, self.settings.incarnation, true);
                let stage = found.mark((seq, *part), order, self.now, partitions)?;
                self.ledger.set_stage(seq, *part, stage);
            }
            // In either mode a marker that a start wrote is on disk now; only parked ones stay owed.
            if self.ledger.release_if_over(seq, false, self.now) {
                let (outcome, reason) = (owed.outcome, EndReason::Failover);
                self.settings.events.say(&Event::Completed { outcome, reason, took_ms: None });
            }
            if owed_done(self.ledger, seq) {
                self.ledger.forget_owed(seq);
            }
        }
        Ok(())
    }

    /// Compares every transaction that a log holds open with the ledger. One that nobody owns is closed, so that no
    /// last stable offset hangs on it.
    fn adopt(&mut self, found: &mut Found, partitions: &Partitions) -> Result<(), StoreError> {
        let open: Vec<(PartId, Producer)> =
            found.opened.iter().flat_map(|(part, opened)| opened.undecided().map(|open| (*part, open))).collect();
        for (part, producer) in open {
            let marker = match self.ledger.adopt(producer, part, self.now) {
                Adopted::Known | Adopted::Again => continue,
                Adopted::Orphan { marker } => marker,
            };
            self.settings.events.say(&Event::Orphan { producer, part, durability: self.settings.durability });
            let (number, order) = orphan(marker, self.settings.incarnation);
            found.mark((number, part), order, self.now, partitions)?;
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
                opened.owner.turn_to_disk(vec![PartLetter::Grant(grant)], self.now)?;
            }
        }
        Ok(())
    }
}

fn owed_done(ledger: &Ledger, seq: u64) -> bool {
    ledger.debts().find(|(debt, _)| *debt == seq).is_some_and(|(_, owed)| owed.is_done())
}

impl Opened {
    /// Transactions open in the log that no marker is on its way to.
    fn undecided(&self) -> impl Iterator<Item = Producer> {
        let owed: BTreeSet<i64> = self.owes.iter().map(|(_, order)| order.producer.id).collect();
        self.owner.open_transactions().into_iter().filter(move |open| !owed.contains(&open.id))
    }
}

impl Found {
    /// Has one marker written and synced. What there is no room for is noted, with all that comes after it: markers are
    /// written in order.
    fn mark(
        &mut self,
        (seq, part): (u64, PartId),
        order: MarkOrder,
        now: Now,
        partitions: &Partitions,
    ) -> Result<Stage, StoreError> {
        let again = after_failure(Stage::Due { at_mono_ms: now.mono_ms, tries: 0 }, now.mono_ms);
        if let Some((_, owes)) = self.unopened.get_mut(&part) {
            owes.push((seq, order));
            return Ok(again);
        }
        let Some(opened) = self.opened.get_mut(&part) else {
            return Ok(if self.damaged.contains(&part) { Stage::Parked } else { Stage::Synced });
        };
        if opened.owes.is_empty() {
            let turn = opened.owner.turn_to_disk(vec![PartLetter::Mark(vec![(seq, order)])], now)?;
            match (turn.damaged, marked(&turn.at_once)) {
                (Some(why), _) => {
                    if let Some(opened) = self.opened.remove(&part) {
                        partitions.add_damaged(part, why, opened.owner.into_source());
                    }
                    self.damaged.insert(part);
                    return Ok(Stage::Parked);
                }
                (None, Marked::Written) => return Ok(Stage::Synced),
                (None, Marked::NoRoom) => {}
            }
        }
        opened.owes.push((seq, order));
        Ok(again)
    }
}

fn tell_owing(part: PartId, owes: &Owes) {
    if !owes.is_empty() {
        let markers = owes.len();
        tracing::error!(part = part.0, markers, "no room for markers it owes: not served before they are written");
    }
}

//! What must hold at every moment (T-1202, the promises), and what must hold in the end.

use std::collections::{BTreeMap, BTreeSet};

use super::World;
use crate::engine::txn::State;
use crate::engine::txn::work::Stage;
use crate::engine::{Offset, Outcome, PartId, Producer};
use crate::runtime::partition::published::{Availability, Published};

/// What readers have been shown: it is never taken back within a run, and durable parts not over one.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    views: BTreeMap<PartId, Published>,
    /// Every offset that readers were given, with what was there.
    given: BTreeMap<(PartId, Offset), Vec<u8>>,
    /// Where each producer's batch was, whether or not it is still there.
    placed: BTreeMap<(PartId, Producer, i32), Offset>,
}

impl Shown {
    /// Looks at every partition now.
    pub(crate) fn look(&mut self, world: &World) {
        let parts: Vec<PartId> = world.parts.keys().copied().collect();
        for part in parts {
            let view = world.published(part);
            if view.availability != Availability::Open {
                continue;
            }
            assert!(view.log_start <= view.last_stable, "T-541 R: {view:?}");
            assert!(view.last_stable <= view.watermark, "T-1202 (1): {view:?}");
            if let Some(before) = self.views.insert(part, view) {
                assert!(
                    before.watermark <= view.watermark,
                    "T-1202 (1): {part:?} back from {before:?} to {view:?}: {:#?}",
                    world.tail()
                );
                assert!(before.log_start <= view.log_start, "back from {before:?} to {view:?}: {:#?}", world.tail());
                assert!(before.last_stable <= view.last_stable, "T-1202 (1): back from {before:?} to {view:?}");
            }
            for found in world.read(part, false) {
                let place = (part, found.header.base_offset);
                let what = [found.header.producer_id.to_be_bytes().as_slice(), &found.payload].concat();
                // A marker's bytes name the coordinator epoch of the start that wrote it.
                let what =
                    if found.marker.is_some() { vec![u8::from(found.marker == Some(Outcome::Commit))] } else { what };
                if let Some(producer) = found.header.producer().filter(|_| found.marker.is_none()) {
                    let batch = (part, producer, found.header.base_sequence);
                    let before = self.placed.insert(batch, place.1);
                    assert!(before.is_none_or(|before| before == place.1), "P5: {place:?} was at {before:?}");
                }
                let before = self.given.insert(place, what.clone());
                assert!(before.is_none_or(|before| before == what), "{place:?} holds something else now");
            }
        }
    }
}

/// T-1202 (2), (3): every open transaction of a log is one that the ledger knows.
pub(crate) fn nothing_hangs(world: &World) {
    let ledger = &world.owner.as_ref().expect("an owner").ledger;
    for (part, entry) in &world.parts {
        let Some(owner) = entry.place.owner() else { continue };
        for open in owner.open_transactions() {
            let known = ledger.txns.iter().any(|(id, txn)| {
                let ongoing = txn.ongoing().is_some_and(|ongoing| ongoing.parts.contains(part));
                let owed = ledger.debts().any(|(_, owed)| {
                    owed.id == *id
                        && owed.marker.id == open.id
                        && owed.parts.get(part).is_some_and(|part| part.stage < Stage::Appended)
                });
                txn.producer.id == open.id && (ongoing || owed)
            });
            assert!(known, "{open:?} hangs in {part:?}: {:#?}", world.trace);
        }
    }
}

/// T-1202 (4): nothing is stored twice.
pub(crate) fn nothing_twice(world: &World, part: PartId) {
    let mut seen = BTreeSet::new();
    for found in world.read(part, false).into_iter().filter(|found| found.marker.is_none()) {
        if let Some(producer) = found.header.producer() {
            let key = (producer, found.header.base_sequence);
            assert!(seen.insert(key), "P5: {key:?} is stored twice in {part:?}");
        }
    }
}

/// In the end nothing is under way: no debt, nothing pending, nobody waits, no permission is shut for ever.
pub(crate) fn all_at_rest(world: &World) {
    let ledger = &world.owner.as_ref().expect("an owner").ledger;
    assert_eq!(ledger.debts().count(), 0, "P6: a debt stays");
    for (id, txn) in ledger.txns.iter() {
        match &txn.state {
            State::Empty | State::Ended { .. } => {}
            State::Ongoing(ongoing) => panic!("P6: {id} is open for ever: {ongoing:?}"),
        }
    }
    assert_eq!(ledger.pending_offsets(), 0, "an offset stays pending");
    for part in world.parts.keys() {
        let view = world.published(*part);
        if view.availability == Availability::Open {
            assert_eq!(view.last_stable, view.watermark, "P6: {part:?} is held back: {:#?}", world.trace);
        }
    }
}

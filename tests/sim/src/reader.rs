//! Consumers, of both isolations, that read as far as they may and write down what they were given.

use std::collections::BTreeMap;

use crate::edge::number_in;
use crate::engine::{Offset, Outcome, PartId};
use crate::history::{History, Of};
use crate::runtime::partition::published::{Availability, Published};
use crate::runtime::world::World;
use crate::runtime::world::ask::Found;

/// What is at one offset, as far as it never changes: a marker written again by a later start names that start.
#[derive(Debug, Clone, PartialEq, Eq)]
enum There {
    Records { number: Option<u64>, producer_id: i64, epoch: i16, sequence: i32 },
    Marker { producer_id: i64, outcome: Outcome },
}

fn there(found: &Found) -> There {
    let header = &found.header;
    match found.marker {
        Some(outcome) => There::Marker { producer_id: header.producer_id, outcome },
        None => There::Records {
            number: number_in(&found.payload),
            producer_id: header.producer_id,
            epoch: header.producer_epoch,
            sequence: header.base_sequence,
        },
    }
}

/// All readers together.
#[derive(Debug, Default)]
pub struct Readers {
    views: BTreeMap<PartId, Published>,
    given: BTreeMap<PartId, BTreeMap<Offset, There>>,
    read_to: BTreeMap<PartId, Offset>,
    /// What a read_committed consumer delivered, in order, and how far it has read.
    delivered: BTreeMap<PartId, Vec<(Offset, Option<u64>)>>,
    committed_to: BTreeMap<PartId, Offset>,
}

impl Readers {
    /// Everybody reads on in one partition.
    pub fn look(&mut self, world: &World, part: PartId, history: &History) {
        let view = world.published(part);
        assert_ne!(
            view.availability,
            Availability::Damaged,
            "{part:?} is called damaged, and nothing synced was changed"
        );
        if view.availability != Availability::Open {
            return;
        }
        self.never_back(part, view);
        let from = self.read_to.get(&part).copied().unwrap_or(0).max(view.log_start);
        for found in world.read_span(part, from, view.watermark) {
            let at = found.header.base_offset;
            if at >= from {
                self.one_value(part, at, there(&found));
            }
        }
        self.read_to.insert(part, view.watermark.max(from));
        let from = self.committed_to.get(&part).copied().unwrap_or(0).max(view.log_start);
        if from < view.last_stable {
            for found in world.committed_span(part, from, view.last_stable) {
                if found.header.base_offset >= from {
                    self.deliver(part, &found, history);
                }
            }
            self.committed_to.insert(part, view.last_stable);
        }
    }

    /// T-1202 (1): last stable offset ≤ watermark ≤ log end, and none of them moves back, over no restart.
    fn never_back(&mut self, part: PartId, view: Published) {
        assert!(view.last_stable <= view.watermark, "T-1202 (1): {part:?} {view:?}");
        if let Some(before) = self.views.insert(part, view) {
            assert!(before.watermark <= view.watermark, "P7, T-1202 (1): {part:?} back from {before:?} to {view:?}");
            assert!(
                before.last_stable <= view.last_stable,
                "P7, T-1202 (1): {part:?} back from {before:?} to {view:?}"
            );
            assert!(before.log_start <= view.log_start, "{part:?}: log start back from {before:?} to {view:?}");
        }
    }

    fn one_value(&mut self, part: PartId, at: Offset, what: There) {
        let given = self.given.entry(part).or_default();
        if let Some(before) = given.get(&at) {
            assert_eq!(before, &what, "one value per offset: {part:?} at {at}");
            return;
        }
        given.insert(at, what);
    }

    fn deliver(&mut self, part: PartId, found: &Found, history: &History) {
        let number = number_in(&found.payload);
        if let Some(Of::Attempt(attempt)) = number.map(|number| history.of(number).of) {
            let attempt = &history.attempts[attempt];
            assert_ne!(attempt.told, Some(Outcome::Abort), "P3: a record of an aborted transaction: {attempt:?}");
            assert_eq!(attempt.asked, Some(Outcome::Commit), "P3: nobody asked for a commit: {attempt:?}");
        }
        self.delivered.entry(part).or_default().push((found.header.base_offset, number));
    }

    /// After a start: all that was ever given is there, and nothing else in its place (P1, P7).
    pub fn look_again(&mut self, world: &World, part: PartId) {
        let view = world.published(part);
        if view.availability != Availability::Open {
            return;
        }
        self.never_back(part, view);
        let now: BTreeMap<Offset, There> = world
            .read_span(part, view.log_start, view.watermark)
            .iter()
            .map(|found| (found.header.base_offset, there(found)))
            .collect();
        for (at, what) in self.given.get(&part).into_iter().flatten().filter(|(at, _)| **at >= view.log_start) {
            assert_eq!(now.get(at), Some(what), "P7: {part:?} at {at} after a start");
        }
    }

    /// A consumer that begins anew is given the same as one that read all along (T-1202 (5)).
    pub fn read_anew(&self, world: &World, part: PartId) {
        let view = world.published(part);
        let reached = self.committed_to.get(&part).copied().unwrap_or(0);
        let anew: Vec<(Offset, Option<u64>)> = world
            .read_committed(part)
            .iter()
            .map(|found| (found.header.base_offset, number_in(&found.payload)))
            .filter(|(at, _)| *at < reached && *at >= view.log_start)
            .collect();
        let before: Vec<(Offset, Option<u64>)> = (self.delivered.get(&part).into_iter().flatten())
            .filter(|(at, _)| *at >= view.log_start)
            .copied()
            .collect();
        assert_eq!(before, anew, "P3, T-1202 (5): {part:?} read along, and read anew");
    }

    /// The partition is gone, with all that was said of it.
    pub fn forget(&mut self, part: PartId) {
        self.views.remove(&part);
        self.given.remove(&part);
        self.read_to.remove(&part);
        self.delivered.remove(&part);
        self.committed_to.remove(&part);
    }
}

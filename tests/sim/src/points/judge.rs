//! What was answered is what readers find.

use std::collections::BTreeMap;

use super::play::Play;
use super::script::{Attempt, GROUP};
use crate::engine::ledger::offsets::Seen;
use crate::engine::{Offset, Outcome, PartId, Producer};
use crate::runtime::partition::published::Availability;
use crate::runtime::world::ask::at;
use crate::runtime::world::invariants::{all_at_rest, nothing_hangs, nothing_twice};

/// How often readers of committed records meet a batch.
type Visible = BTreeMap<(Producer, i32, PartId), usize>;

impl Play {
    /// Compares what the client was told with what is there. Time has passed, and there is room.
    pub(super) fn judge(&mut self) {
        self.wait(70_000);
        let parts: Vec<PartId> = self.world.parts.keys().copied().collect();
        let mut visible = Visible::new();
        let mut plain: Vec<Vec<u8>> = Vec::new();
        for part in parts {
            self.world.load(part);
            let view = self.world.published(part);
            assert_eq!(view.availability, Availability::Open, "{part:?} is out of service");
            nothing_twice(&self.world, part);
            for found in self.world.read_committed(part) {
                match found.header.producer() {
                    Some(producer) => *visible.entry((producer, found.header.base_sequence, part)).or_default() += 1,
                    None => plain.push(found.payload),
                }
            }
        }
        nothing_hangs(&self.world);
        all_at_rest(&self.world);
        for (value, acked) in &self.plain {
            let there = plain.iter().any(|payload| payload.windows(value.len()).any(|part| part == value.as_bytes()));
            assert!(there || !acked, "P1: {value} is lost");
        }
        let mut offsets = BTreeMap::new();
        for attempt in &self.attempts {
            if is_committed(attempt, &visible) {
                offsets.extend(attempt.staged);
            }
        }
        self.offsets_agree(&offsets);
    }

    /// The group's offset in a partition is that of the last committed transaction that staged one there; P2, both ways.
    fn offsets_agree(&mut self, expected: &BTreeMap<PartId, Offset>) {
        let parts: Vec<PartId> = self.world.parts.keys().copied().collect();
        for part in parts {
            let found = self.world.offset(GROUP, part, true);
            let wanted = expected.get(&part).map_or(Seen::Absent, |offset| Seen::At(at(*offset)));
            assert_eq!(found, wanted, "P2: the offset of {part:?}, {:?}", self.attempts);
        }
    }
}

/// Whether readers find the transaction; one that is half there is the worst of all.
fn is_committed(attempt: &Attempt, visible: &Visible) -> bool {
    let seen = |acked: bool| {
        let sent = attempt.sent.iter().filter(move |sent| sent.acked || !acked);
        sent.map(|sent| visible.get(&(attempt.producer, sent.sequence, sent.part)).copied().unwrap_or(0))
    };
    let all = seen(true).all(|times| times == 1);
    let none = seen(false).all(|times| times == 0);
    match attempt.told {
        Some(Outcome::Commit) => assert!(all, "P1, P2: told committed: {attempt:?}, {visible:?}"),
        Some(Outcome::Abort) => assert!(none, "P3: told aborted: {attempt:?}, {visible:?}"),
        None => assert!(all || none, "P2: {attempt:?}, {visible:?}"),
    }
    assert!(none || attempt.asked_commit, "nobody asked for a commit: {attempt:?}, {visible:?}");
    !none
}

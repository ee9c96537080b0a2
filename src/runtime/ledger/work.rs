//! What a decision owes, carried out: markers asked for, looked after, forgotten.

use std::collections::BTreeMap;

use super::ending::{Ending, Want};
use super::wait::{Until, Waiting, patience_ms};
use super::{Answer, LedgerOwner, Step, Turn};
use crate::engine::partition::MarkOrder;
use crate::engine::txn::end::Cause;
use crate::engine::txn::work::{Stage, after_failure};
use crate::engine::{Now, Outcome, PartId, TransactionalId};
use crate::known_bugs::{Bug, is_in};
use crate::runtime::events::Event;
use crate::runtime::post::{LedgerLetter, MarkResult, PartLetter, Post};
use crate::runtime::tracks::{Moment, PLACES, Place};

impl LedgerOwner {
    /// A decision is stored. Its gather is over; who asked for it waits for its markers; others are judged anew.
    pub(super) fn decided(
        &mut self,
        id: &TransactionalId,
        seq: Option<u64>,
        (outcome, cause): (Outcome, Cause),
        (now, turn): (Now, &mut Turn),
    ) {
        let ending = self.endings.remove(id);
        if let Some(ending) = ending.as_ref().filter(|ending| self.events.follows(ending.number)) {
            let (number, places) = (ending.number, self.places(ending));
            let partitions = ending.seals.len();
            self.events.note(&Moment::Decided { number, debt: seq, outcome, cause, places: &places, partitions });
        }
        let wants = ending.map(|ending| ending.wants).unwrap_or_default();
        for Want { asked, outcome: wanted, cause: wants } in wants {
            let Some((to, command)) = asked else { continue };
            // A tool has what it wants however the transaction came to be aborted; a client only by its own decision.
            let same = wanted == outcome && (cause == Cause::Client || wants != Cause::Client);
            match (same, seq) {
                (true, None) => turn.held.push(Post::Answer(to, Answer::Done)),
                (true, Some(_)) => {
                    let until_mono_ms = now.mono_ms.saturating_add(patience_ms(&command));
                    let waiting = Waiting { to, how: Until::Over { outcome, command }, until_mono_ms };
                    self.waiting.entry(id.clone()).or_default().push(waiting);
                }
                (false, _) => turn.at_once.push(Post::Ledger(LedgerLetter::Ask(to, command))),
            }
        }
        if seq.is_none() {
            turn.at_once.extend(self.wake_waiting(id));
        }
    }

    /// The partitions of a transaction by their names; one of a deleted topic has none any more.
    fn places(&self, ending: &Ending) -> Vec<Place> {
        let catalog = self.ledger.stored_catalog();
        let place = |part: &PartId| {
            let (topic, index) = catalog.part(*part)?;
            Some(Place { part: *part, topic: topic.name.clone(), index })
        };
        ending.seals.keys().take(PLACES).filter_map(place).collect()
    }

    /// Nothing is owed: who waits for this id is judged anew in the next turn.
    pub(super) fn wake_waiting(&mut self, id: &TransactionalId) -> Vec<Post> {
        let again = |waiting: Waiting| match waiting.how {
            Until::Over { command, .. } | Until::Again(command) => Post::Ledger(LedgerLetter::Ask(waiting.to, command)),
        };
        self.waiting.remove(id).unwrap_or_default().into_iter().map(again).collect()
    }

    /// What a partition says of markers. A failed one is tried again with a pause; the decision stands.
    pub(super) fn note_marked(&mut self, part: PartId, debts: &[u64], result: MarkResult, now: Now) {
        for seq in debts {
            self.count_marker((*seq, part), result);
            self.events.note(&Moment::Marked { debt: *seq, part, result });
            let stage = match result {
                MarkResult::Appended => Stage::Appended,
                MarkResult::Synced | MarkResult::Gone => Stage::Synced,
                MarkResult::Parked => Stage::Parked,
                MarkResult::Failed(refusal) => {
                    let Some(owed) = self.ledger.owed.get(seq) else { continue };
                    self.events.say(&Event::MarkerRetried { id: owed.id.clone(), refusal });
                    let Some(before) = owed.parts.get(&part).map(|part| part.stage) else { continue };
                    after_failure(before, now.mono_ms)
                }
            };
            self.ledger.set_stage(*seq, part, stage);
            self.moved.insert(*seq);
        }
    }

    /// Lets go of ids whose decision is over, and notes debts that are paid everywhere.
    pub(super) fn look_at_moved(&mut self, now: Now, turn: &mut Turn, steps: &mut Vec<Step>) {
        let parked = self.ledger.due(now.mono_ms).into_iter().filter_map(|who| match who {
            crate::engine::ledger::Waits::Owed(seq) => Some(seq),
            crate::engine::ledger::Waits::Txn(_) | crate::engine::ledger::Waits::Group(_) => None,
        });
        self.moved.extend(parked);
        for seq in std::mem::take(&mut self.moved) {
            let Some(owed) = self.ledger.owed.get(&seq) else { continue };
            let (id, outcome, done) = (owed.id.clone(), owed.outcome, owed.is_done());
            let released = self.ledger.release_if_over(seq, self.settings.redo, now);
            if released {
                self.phases_over(seq, now);
                self.end_waiting(&id, outcome, turn, steps);
            }
            // Under `redo` the id is free before the last marker is on disk; what was given up never comes to an end.
            if done || released && self.has_left(seq) {
                self.events.note(&Moment::Over { debt: seq });
            }
            if done {
                self.phases_done(seq, now);
                self.paid.insert(seq);
            }
        }
    }

    fn has_left(&self, seq: u64) -> bool {
        let owed = self.ledger.owed.get(&seq);
        owed.is_some_and(|owed| owed.parts.values().any(|part| part.stage == Stage::Left))
    }

    /// Asks each partition for the markers that are due there: one letter a partition, after the decision is flushed.
    pub(super) fn send_markers(&mut self, now: Now, turn: &mut Turn) {
        let mut letters: BTreeMap<PartId, Vec<(u64, MarkOrder)>> = BTreeMap::new();
        let due: Vec<u64> = (self.ledger.due(now.mono_ms).into_iter())
            .filter_map(|who| match who {
                crate::engine::ledger::Waits::Owed(seq) => Some(seq),
                crate::engine::ledger::Waits::Txn(_) | crate::engine::ledger::Waits::Group(_) => None,
            })
            .collect();
        for seq in due {
            let Some(owed) = self.ledger.owed.get(&seq).cloned() else { continue };
            for (part, state) in owed.due(now.mono_ms) {
                let tries = match state.stage {
                    Stage::Due { tries, .. } => tries,
                    Stage::Asked { .. } | Stage::Parked | Stage::Left | Stage::Appended | Stage::Synced => 0,
                };
                let order = owed.order(&state, self.settings.incarnation, tries > 0);
                letters.entry(part).or_default().push((seq, order));
                self.ledger.set_stage(seq, part, Stage::Asked { tries });
            }
        }
        let leaves = if is_in(Bug::MarkersBeforeDecision) { &mut turn.at_once } else { &mut turn.held };
        leaves.extend(letters.into_iter().map(|(part, orders)| Post::Part(part, PartLetter::Mark(orders))));
    }
}

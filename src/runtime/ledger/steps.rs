//! One step: a command on the state of this turn, and what follows from it once it is stored.

use std::collections::BTreeSet;

use super::ending::Want;
use super::wait::{Until, WAIT_MS, Waiting};
use super::{Effects, LedgerOwner, Step, Then};
use crate::engine::ledger::rows::PartRow;
use crate::engine::ledger::transactions::Owner;
use crate::engine::partition::Grant;
use crate::engine::txn::end::{Cause, Verdict};
use crate::engine::txn::init::{Init, check_timeout};
use crate::engine::txn::{Addition, Claimed, Txn};
use crate::engine::{Now, Outcome, PartId, Producer, Refusal, ReplyTo, TransactionalId};
use crate::metrics::FencingReason;
use crate::runtime::events::Event;
use crate::runtime::post::{Answer, Command, LedgerLetter, MoveLogStart, PartLetter, Post, StageOffsets};

/// Whether a transaction writes to no partition: there is nothing to seal.
pub(super) fn no_partitions(parts: &BTreeSet<PartId>) -> bool {
    parts.is_empty()
}

impl LedgerOwner {
    /// Runs a step on the upper layer. A refusal is an effect like any other: it may rest on what this turn stores.
    pub(super) fn run(&mut self, step: &Step, now: Now) -> Effects {
        let mut effects = Effects::default();
        match step {
            Step::Ask(to, command) => self.ask(*to, command, now, &mut effects),
            Step::Decide(id) => self.decide(id, now, &mut effects),
            Step::TimeOut(id) => {
                if let Some(number) = self.ledger.txns.get(id).and_then(Txn::ongoing).map(|ongoing| ongoing.number) {
                    let want = Want { asked: None, outcome: Outcome::Abort, cause: Cause::Timeout };
                    self.begin((id, number), want, &mut effects);
                }
            }
            Step::GroupTimer(id) => effects.answer_group(self.ledger.expire_group(id, now)),
            Step::Forget(seq) => self.ledger.forget_owed(*seq),
            Step::Checkpoint(part, point, log_start) => {
                if let Some(stands) = self.ledger.part(*part).copied() {
                    let log_start = stands.log_start.max(*log_start);
                    self.ledger.put_part(*part, PartRow { point: Some(*point), log_start, ..stands });
                }
            }
            Step::MoveLogStart(moved) => self.move_log_start(moved, &mut effects),
            Step::Upkeep => {
                for id in self.ledger.expire_ids(self.settings.id_expiration_ms, now) {
                    effects.then.push(Then::Say(Event::IdExpired { id }));
                }
                self.ledger.expire_offsets(self.settings.offsets_retention_ms, now);
            }
            Step::Stop => effects.answer_group(self.ledger.stop_groups()),
        }
        effects
    }

    /// The log start only ever rises: a checkpoint that was taken before it moved may come behind it.
    fn move_log_start(&mut self, moved: &MoveLogStart, effects: &mut Effects) {
        let MoveLogStart { part, log_start, point, to } = *moved;
        let Some(stands) = self.ledger.part(part).copied() else {
            // Its topic was deleted meanwhile.
            let gone = Answer::Refused(Refusal::UnknownTopicOrPartition);
            effects.held.extend(to.map(|to| Post::Answer(to, gone)));
            return;
        };
        let row = PartRow { point: point.or(stands.point), log_start: stands.log_start.max(log_start), ..stands };
        self.ledger.put_part(part, row);
        effects.held.push(Post::Part(part, PartLetter::LogStartStored { log_start, to }));
    }

    fn ask(&mut self, to: ReplyTo, command: &Command, now: Now, effects: &mut Effects) {
        match command {
            Command::InitProducer { id: None, .. } => {
                let id = self.ledger.fresh_producer_id();
                effects.answer(to, Answer::Producer(Producer { id, epoch: 0 }));
            }
            Command::InitProducer { id: Some(id), timeout_ms, expected } => {
                let init = Init { timeout_ms: *timeout_ms, expected: *expected };
                self.init_producer((to, command), id, init, (now, effects));
            }
            Command::Add { id, producer, addition } => {
                self.add((to, command), Claimed { id, producer: *producer }, addition, (now, effects));
            }
            Command::Verify { id, producer, part } => {
                match self.ledger.verify(Claimed { id, producer: *producer }, *part) {
                    Ok(_) if self.is_ending(id) => {
                        effects.answer(to, Answer::Refused(Refusal::ConcurrentTransactions));
                    }
                    Ok(number) => {
                        let waits = self.first_unflushed.contains(part);
                        let leaves = if waits { &mut effects.held } else { &mut effects.at_once };
                        leaves.push(grant(id, *producer, number, *part));
                        leaves.push(Post::Answer(to, Answer::Done));
                    }
                    Err(refusal) => effects.answer(to, Answer::Refused(refusal)),
                }
            }
            Command::StageOffsets(stage) => self.stage((to, command), stage, (now, effects)),
            Command::EndTxn { id, producer, outcome } => {
                self.end_txn((to, command), Claimed { id, producer: *producer }, *outcome, (now, effects))
            }
            Command::WriteMarkers { mark, parts } => {
                parts.iter().for_each(|(part, to)| self.write_marker((*part, *to), mark, now, effects));
            }
            Command::Join(..)
            | Command::Sync(..)
            | Command::Heartbeat(..)
            | Command::Leave(..)
            | Command::CommitOffsets(_)
            | Command::FetchOffsets { .. } => self.ask_group(to, command, now, effects),
            Command::DeleteGroups(ids) => self.delete_groups(to, ids, effects),
            Command::DeleteOffsets(group, parts) => self.delete_offsets(to, (group, parts), effects),
            Command::AbortTxn { id } => self.abort_for_operator((to, command), id, now, effects),
            Command::Show(show) => effects.answer(to, self.shown(show, now)),
            Command::CreateTopics(specs) => self.create_topics(to, specs, effects),
            Command::DeleteTopics(keys) => self.delete_topics(to, keys, effects),
            Command::GrowTopics { specs, validate_only } => self.grow_topics(to, specs, *validate_only, effects),
            Command::ChangeConfigs { resources, validate_only } => {
                self.change_configs(to, resources, *validate_only, effects);
            }
        }
    }

    fn init_producer(
        &mut self,
        (to, command): (ReplyTo, &Command),
        id: &TransactionalId,
        init: Init,
        (now, effects): (Now, &mut Effects),
    ) {
        let named = if id.is_empty() { Err(Refusal::InvalidRequest) } else { Ok(()) };
        if let Err(refusal) = named.and_then(|()| check_timeout(init.timeout_ms, self.settings.max_timeout_ms)) {
            effects.answer(to, Answer::Refused(refusal));
            return;
        }
        match self.ledger.init_producer(id, init, now) {
            // Whoever held the id is fenced now; it is said when he is met, for an owner that comes back is no event.
            Ok(Owner::Now(new)) => effects.answer(to, Answer::Producer(new)),
            Ok(Owner::EndFirst { number }) => {
                let want = Want { asked: None, outcome: Outcome::Abort, cause: Cause::NewOwner };
                self.begin((id, number), want, effects);
                effects.answer(to, Answer::Refused(Refusal::ConcurrentTransactions));
            }
            Err(Refusal::ConcurrentTransactions) => self.wait((to, command), id, now, effects),
            Err(refusal) => effects.answer(to, Answer::Refused(refusal)),
        }
    }

    fn add(
        &mut self,
        (to, command): (ReplyTo, &Command),
        claimed: Claimed<'_>,
        addition: &Addition,
        (now, effects): (Now, &mut Effects),
    ) {
        let Claimed { id, producer } = claimed;
        if self.is_ending(id) {
            self.wait((to, command), id, now, effects);
            return;
        }
        let begins = self.events.is_tracked() && self.ledger.txns.get(id).is_some_and(|txn| txn.ongoing().is_none());
        match self.ledger.add_to_txn(claimed, addition, now) {
            Ok(granted) => {
                if begins {
                    effects.then.push(Then::Begun { id: id.clone(), number: granted.number, producer });
                }
                self.first_unflushed.extend(granted.first_ever.iter().copied());
                // The row that says that a partition holds transactions must be on disk before its log can, whoever's
                // add it came with: a start would not look for an open one there. An add that is repeated is answered
                // behind the permissions that are on their way from the first.
                let waits = addition.parts().any(|part| self.first_unflushed.contains(part));
                let leaves = if waits { &mut effects.held } else { &mut effects.at_once };
                leaves.extend(granted.parts.into_iter().map(|part| grant(id, producer, granted.number, part)));
                leaves.push(Post::Answer(to, Answer::Done));
                if !granted.first_ever.is_empty() {
                    effects.held.push(Post::Ledger(LedgerLetter::FirstFlushed(granted.first_ever)));
                }
            }
            Err(refusal) => {
                self.note_fenced(id, producer, refusal, effects);
                effects.answer(to, Answer::Refused(refusal));
            }
        }
    }

    /// Whose the id is comes before whether its end is being decided: who is fenced is told so, not to come again
    /// (T-222, T-607c).
    fn stage(&mut self, (to, command): (ReplyTo, &Command), stage: &StageOffsets, (now, effects): (Now, &mut Effects)) {
        let StageOffsets { id, producer, group, claim, offsets } = stage;
        let owned = self.ledger.known(id).and_then(|txn| txn.owned_by(*producer));
        if owned.is_ok() && self.is_ending(id) {
            self.wait((to, command), id, now, effects);
            return;
        }
        let claimed = Claimed { id, producer: *producer };
        let staged = owned.and_then(|()| self.ledger.stage_for_group(claimed, (group, claim), offsets.clone(), now));
        if let Err(refusal) = staged {
            self.note_fenced(id, *producer, refusal, effects);
        }
        effects.answer_result(to, staged);
    }

    fn end_txn(
        &mut self,
        (to, command): (ReplyTo, &Command),
        claimed: Claimed<'_>,
        outcome: Outcome,
        (now, effects): (Now, &mut Effects),
    ) {
        let Claimed { id, producer } = claimed;
        match self.ledger.judge_end(claimed, outcome) {
            Ok((Verdict::Decide, number)) => {
                let want = Want { asked: Some((to, command.clone())), outcome, cause: Cause::Client };
                self.begin((id, number), want, effects);
            }
            Ok((Verdict::Repeated, _)) => effects.answer(to, Answer::Done),
            Ok((Verdict::UnderWay { same: true }, _)) => {
                let until_mono_ms = now.mono_ms.saturating_add(WAIT_MS);
                let how = Until::Over { outcome, command: command.clone() };
                let waiting = Waiting { to, how, until_mono_ms };
                effects.then.push(Then::Wait { id: id.clone(), waiting });
            }
            Ok((Verdict::UnderWay { same: false }, _)) => {
                effects.answer(to, Answer::Refused(Refusal::ConcurrentTransactions));
            }
            Err(refusal) => {
                self.note_fenced(id, producer, refusal, effects);
                effects.answer(to, Answer::Refused(refusal));
            }
        }
    }

    /// The decision itself, on the state as it is now.
    fn decide(&mut self, id: &TransactionalId, now: Now, effects: &mut Effects) {
        let Some((number, (outcome, cause), sealed)) = self.endings.get(id).and_then(|ending| {
            let decision = ending.decision()?;
            Some((ending.number, decision, ending.log_ends()))
        }) else {
            return;
        };
        let open = self.ledger.txns.get(id).and_then(Txn::ongoing);
        let took_ms = open.map_or(0, |open| now.mono_ms.saturating_sub(open.since_mono_ms));
        let before = self.ledger.txns.get(id).map(|txn| txn.producer);
        let Ok(seq) = self.ledger.decide((id, number), (outcome, cause), &sealed, now) else {
            effects.then.push(Then::Void(id.clone()));
            return;
        };
        let reason = match cause {
            Cause::Client => None,
            Cause::Timeout => Some(FencingReason::TimeoutBump),
            Cause::NewOwner => Some(FencingReason::InitProducerId),
            Cause::Admin => Some(FencingReason::Admin),
        };
        if let (Some(old), Some(reason)) = (before, reason) {
            let new = self.ledger.txns.get(id).map_or(old, |txn| txn.producer);
            effects.then.push(Then::Say(Event::Fenced { id: id.clone(), old, new, reason }));
        }
        effects.then.push(Then::Decided { id: id.clone(), seq, outcome, cause, took_ms });
    }

    fn note_fenced(&self, id: &TransactionalId, claimed: Producer, refusal: Refusal, effects: &mut Effects) {
        if refusal == Refusal::ProducerFenced {
            let new = self.ledger.txns.get(id).map_or(claimed, |txn| txn.producer);
            let reason = FencingReason::StaleEpoch;
            effects.then.push(Then::Say(Event::Fenced { id: id.clone(), old: claimed, new, reason }));
        }
    }

    /// Whether an end of the id's transaction is under way, as of this step: gathered for, wanted by an earlier step of
    /// this turn, or owed.
    fn is_ending(&self, id: &TransactionalId) -> bool {
        let open = self.ledger.txns.get(id).and_then(Txn::ongoing).map(|ongoing| ongoing.number);
        let gathering = self.endings.get(id).is_some_and(|ending| Some(ending.number) == open);
        gathering || open.is_some_and(|number| self.begun.contains(&number)) || self.ledger.is_owing(id)
    }

    /// An end begins with this step: later steps of the turn find the id closed, for the seals go out before anything
    /// that they could let in.
    pub(super) fn begin(&mut self, (id, number): (&TransactionalId, u64), want: Want, effects: &mut Effects) {
        self.begun.insert(number);
        effects.then.push(Then::Begin { id: id.clone(), number, want });
    }

    /// The request waits a short bounded time for the id's decision, then is judged anew.
    fn wait(&self, (to, command): (ReplyTo, &Command), id: &TransactionalId, now: Now, effects: &mut Effects) {
        let until_mono_ms = now.mono_ms.saturating_add(WAIT_MS);
        let waiting = Waiting { to, how: Until::Again(command.clone()), until_mono_ms };
        effects.then.push(Then::Wait { id: id.clone(), waiting });
    }
}

/// The permission that a partition needs; the commit that holds its row is filled in when there is one.
fn grant(id: &TransactionalId, producer: Producer, number: u64, part: PartId) -> Post {
    let grant = Grant { txn: id.clone(), producer, txn_no: number, row: 0 };
    Post::Part(part, PartLetter::Grant(grant))
}

impl Effects {
    pub(super) fn answer(&mut self, to: ReplyTo, answer: Answer) {
        self.held.push(Post::Answer(to, answer));
    }

    pub(super) fn answer_result(&mut self, to: ReplyTo, result: Result<(), Refusal>) {
        self.answer(to, result.map_or_else(Answer::Refused, |()| Answer::Done));
    }
}

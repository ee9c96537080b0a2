//! The gather before a decision: every listed partition closes the transaction's permission and says where.
//!
//! Gathering decides nothing. The decision is judged on the state at the moment it is stored; a timeout, a new owner or
//! another decision stored meanwhile makes the gather void.

use std::collections::BTreeMap;

use super::steps::no_partitions;
use super::{LedgerOwner, Step, Turn};
use crate::engine::txn::end::Cause;
use crate::engine::txn::work::{RETRY_FIRST_MS, RETRY_MAX_MS};
use crate::engine::{Now, Offset, Outcome, PartId, Refusal, ReplyTo, TransactionalId};
use crate::known_bugs::{Bug, is_in};
use crate::runtime::post::{Answer, Command, LedgerLetter, PartLetter, Post, SealState, Sealed};
use crate::runtime::tracks::Moment;

/// One open transaction on its way to a decision.
#[derive(Debug)]
pub(super) struct Ending {
    /// The transaction.
    pub(super) number: u64,
    /// Which gather of it this is.
    round: u64,
    producer_id: i64,
    /// How it stands in each of its partitions.
    pub(super) seals: BTreeMap<PartId, SealState>,
    /// Who wants it to end, and how; the first one, unless somebody fences.
    pub(super) wants: Vec<Want>,
    /// The store had no room for the decision: try again then.
    pub(super) retry_mono_ms: Option<i64>,
    tries: u32,
    /// When it was first asked for, on the monotonic clock.
    pub(super) asked_mono_ms: i64,
}

/// Somebody's wish that a transaction end.
#[derive(Debug, Clone)]
pub(super) struct Want {
    /// Who waits for the outcome, with what was asked: a client or a tool. Nobody for a timeout, or a new owner, who is told
    /// to come again.
    pub(super) asked: Option<(ReplyTo, Command)>,
    /// How.
    pub(super) outcome: Outcome,
    /// Why.
    pub(super) cause: Cause,
}

impl Ending {
    /// Which decision could be stored now, if any. Whoever fences comes first. A commit waits until all that was
    /// written is on disk; an abort waits for no disk.
    pub(super) fn decision(&self) -> Option<(Outcome, Cause)> {
        let want = self.fencing().or_else(|| self.wants.first())?;
        let ready = |state: &SealState| match state {
            SealState::Asked => false,
            SealState::Closed(_) => want.outcome == Outcome::Abort,
            SealState::Durable(_) | SealState::Gone => true,
        };
        self.seals.values().all(ready).then_some((want.outcome, want.cause))
    }

    /// Whoever wants to fence the producer, if anyone does.
    pub(super) fn fencing(&self) -> Option<&Want> {
        self.wants.iter().find(|want| want.cause != Cause::Client)
    }

    /// Log ends as sealed; `None` for partitions that are gone.
    pub(super) fn log_ends(&self) -> BTreeMap<PartId, Option<Offset>> {
        let end = |state: &SealState| match state {
            SealState::Asked | SealState::Gone => None,
            SealState::Closed(end) | SealState::Durable(end) => Some(*end),
        };
        self.seals.iter().map(|(part, state)| (*part, end(state))).collect()
    }
}

impl LedgerOwner {
    /// Begins the end of transaction `number`, or joins the one under way. From here on the ledger admits nothing
    /// more for the id. A client's gather does not stop the clock; who fences has no use for it any more.
    pub(super) fn begin_ending(
        &mut self,
        id: &TransactionalId,
        number: u64,
        want: Want,
        (now, turn): (Now, &mut Turn),
    ) {
        let fences = want.cause != Cause::Client;
        if let Some(ending) = self.endings.get_mut(id).filter(|ending| ending.number == number) {
            let differs = |have: &Want| have.cause == Cause::Client && have.outcome != want.outcome;
            if fences {
                self.ledger.pause_timeout(id);
                self.events.note(&Moment::Asked { number, outcome: want.outcome, cause: want.cause });
            }
            if !fences && ending.wants.iter().any(differs) {
                answer(turn, &want, Refusal::ConcurrentTransactions);
            } else {
                ending.wants.push(want);
                let ready = ending.decision().is_some();
                self.decide_soon(id, ready, turn);
            }
            return;
        }
        let Some((producer_id, parts)) = self.ledger.txns.get(id).and_then(|txn| {
            let ongoing = txn.ongoing().filter(|ongoing| ongoing.number == number)?;
            Some((txn.producer.id, std::sync::Arc::clone(&ongoing.parts)))
        }) else {
            answer(turn, &want, Refusal::ConcurrentTransactions);
            return;
        };
        if fences {
            self.ledger.pause_timeout(id);
        }
        self.events.note(&Moment::Asked { number, outcome: want.outcome, cause: want.cause });
        self.rounds = self.rounds.saturating_add(1);
        let round = self.rounds;
        let unasked = is_in(Bug::DecisionAtReceipt);
        for part in parts.iter().filter(|_| !unasked) {
            let letter = PartLetter::Seal { id: id.clone(), producer_id, number, round };
            turn.at_once.push(Post::Part(*part, letter));
        }
        let state = if unasked { SealState::Durable(Offset::MAX) } else { SealState::Asked };
        let seals = parts.iter().map(|part| (*part, state)).collect();
        let (wants, asked_mono_ms) = (vec![want], now.mono_ms);
        let ending = Ending { number, round, producer_id, seals, wants, retry_mono_ms: None, tries: 0, asked_mono_ms };
        self.endings.insert(id.clone(), ending);
        self.decide_soon(id, unasked || no_partitions(&parts), turn);
    }

    /// What was gathered for is not open any more: who asked is judged anew.
    pub(super) fn void(&mut self, id: &TransactionalId, turn: &mut Turn) {
        let Some(Ending { number, wants, .. }) = self.endings.remove(id) else { return };
        self.events.note(&Moment::Undone { number });
        for (to, command) in wants.into_iter().filter_map(|want| want.asked) {
            turn.at_once.push(Post::Ledger(LedgerLetter::Ask(to, command)));
        }
    }

    /// A decision that is ready while a turn is being carried out is taken in the next one, at once.
    fn decide_soon(&mut self, id: &TransactionalId, ready: bool, turn: &mut Turn) {
        if ready {
            if let Some(ending) = self.endings.get_mut(id) {
                ending.retry_mono_ms = Some(i64::MIN);
            }
            turn.at_once.push(Post::Ledger(LedgerLetter::Wake));
        }
    }

    /// A partition's answer to a seal. Gives the decision that it makes possible.
    pub(super) fn note_seal(&mut self, Sealed { id, number, round, part, state }: Sealed) -> Option<Step> {
        let asked = |ending: &&mut Ending| ending.number == number && ending.round == round;
        let ending = self.endings.get_mut(&id).filter(asked)?;
        let seal = ending.seals.get_mut(&part)?;
        if !matches!(seal, SealState::Durable(_)) {
            *seal = state;
            if matches!(state, SealState::Durable(_) | SealState::Gone) {
                self.events.note(&Moment::Sealed { number, part });
            }
        }
        ending.decision().map(|_| Step::Decide(id))
    }

    /// The decision found no room in the store. Who asked for it is told to ask again. The permissions are opened if only
    /// clients or operators did, before whoever waited for the end is judged anew; a timeout, a new owner or a tool keeps its seal and
    /// is tried again with a pause.
    pub(super) fn undo_ending(&mut self, id: &TransactionalId, now: Now) -> Vec<Post> {
        let Some(mut ending) = self.endings.remove(id) else { return Vec::new() };
        self.events.note(&Moment::Undone { number: ending.number });
        // Who is refused, a client or an operator, must not find it done afterwards.
        let stays = |want: &Want| {
            let asks = want.asked.as_ref().is_some_and(|(_, command)| matches!(command, Command::AbortTxn { .. }));
            want.cause != Cause::Client && !asks
        };
        let (mut stay, gone): (Vec<Want>, Vec<Want>) = std::mem::take(&mut ending.wants).into_iter().partition(stays);
        let mut posts: Vec<Post> = (stay.iter_mut().filter_map(|want| want.asked.take()))
            .chain(gone.into_iter().filter_map(|want| want.asked))
            .map(|(to, _)| Post::Answer(to, Answer::Refused(Refusal::NotCoordinator)))
            .collect();
        ending.wants = stay;
        if ending.wants.is_empty() {
            self.ledger.resume_timeout(id);
            let (producer_id, number) = (ending.producer_id, ending.number);
            let unseal = |part: &PartId| Post::Part(*part, PartLetter::Unseal { producer_id, number });
            posts.extend(ending.seals.keys().map(unseal));
            posts.extend(self.wake_waiting(id));
            return posts;
        }
        let pause = RETRY_FIRST_MS.saturating_mul(1 << ending.tries.min(10)).min(RETRY_MAX_MS);
        ending.tries = ending.tries.saturating_add(1);
        ending.retry_mono_ms = Some(now.mono_ms.saturating_add(pause));
        self.endings.insert(id.clone(), ending);
        posts
    }
}

fn answer(turn: &mut Turn, want: &Want, refusal: Refusal) {
    if let Some((to, _)) = &want.asked {
        turn.held.push(Post::Answer(*to, Answer::Refused(refusal)));
    }
}

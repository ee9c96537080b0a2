//! Requests that wait a short bounded time for a decision to be carried out.
//!
//! Not every client retries ConcurrentTransactions well, and none has to meet it in ordinary traffic (C-27, C-28): who
//! comes while markers are being written waits for them, and is told 51 only when they take long.

use super::{LedgerOwner, Step, Turn};
use crate::engine::txn::work::{Owed, Stage};
use crate::engine::{Now, Outcome, Refusal, ReplyTo, TransactionalId};
use crate::runtime::post::{Answer, Command, Post};

/// How long a client's request waits for a decision to be carried out, in milliseconds.
pub(super) const WAIT_MS: i64 = 500;
/// How long a tool's does. One that asked again would find a newer epoch than the one it knows.
const TOOL_WAIT_MS: i64 = 20_000;

/// How long this request waits for a decision to be carried out, in milliseconds.
pub(super) fn patience_ms(command: &Command) -> i64 {
    if matches!(command, Command::WriteMarkers { .. } | Command::AbortTxn { .. }) { TOOL_WAIT_MS } else { WAIT_MS }
}

/// A request that waits for the end of its id's last transaction.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Who.
    pub(super) to: ReplyTo,
    /// For what.
    pub(super) how: Until,
    /// Until when, on the monotonic clock.
    pub(super) until_mono_ms: i64,
}

/// What a waiting request is to get when the decision is over.
#[derive(Debug)]
pub(super) enum Until {
    /// It asked for this very decision: success.
    Over {
        /// The decision.
        outcome: Outcome,
        /// The request.
        command: Command,
    },
    /// It is judged anew.
    Again(Command),
}

impl LedgerOwner {
    /// The id's decision is over: who waited for it is answered, or judged anew in this turn.
    pub(super) fn end_waiting(
        &mut self,
        id: &TransactionalId,
        outcome: Outcome,
        turn: &mut Turn,
        steps: &mut Vec<Step>,
    ) {
        for waiting in self.waiting.remove(id).unwrap_or_default() {
            match waiting.how {
                Until::Over { outcome: asked, command } if asked == outcome => {
                    let answer =
                        if self.is_left(&command) { Answer::Refused(Refusal::KafkaStorageError) } else { Answer::Done };
                    turn.at_once.push(Post::Answer(waiting.to, answer));
                }
                Until::Over { command, .. } | Until::Again(command) => steps.push(Step::Ask(waiting.to, command)),
            }
        }
    }

    /// Whether a tool asked for a marker in a partition that the decision has left behind, for it is damaged.
    fn is_left(&self, command: &Command) -> bool {
        if let Command::AbortTxn { id } = command {
            let left = |owed: &Owed| owed.id == *id && owed.parts.values().any(|part| part.stage == Stage::Left);
            return self.ledger.debts().any(|(_, owed)| left(owed));
        }
        let Command::WriteMarkers { mark, parts } = command else { return false };
        let judged = |part| self.ledger.judge_tool_mark(mark, part);
        parts.iter().any(|(part, _)| judged(*part) == Err(Refusal::KafkaStorageError))
    }

    /// Who waited long enough is told to come again.
    pub(super) fn stop_waiting(&mut self, now: Now, turn: &mut Turn) {
        self.waiting.retain(|_, all| {
            all.retain(|waiting| {
                let stays = waiting.until_mono_ms > now.mono_ms;
                if !stays {
                    let refused = Answer::Refused(Refusal::ConcurrentTransactions);
                    turn.held.push(Post::Answer(waiting.to, refused));
                }
                stays
            });
            !all.is_empty()
        });
    }

    /// The process stops: whoever waits, or wants an end that is not decided, is told to look for the coordinator.
    pub(super) fn refuse_waiting(&mut self, turn: &mut Turn) {
        self.refuse_parked(turn);
        let wanting = self.endings.values_mut().flat_map(|ending| std::mem::take(&mut ending.wants));
        for to in wanting.filter_map(|want| want.asked.map(|(to, _)| to)) {
            turn.held.push(Post::Answer(to, Answer::Refused(Refusal::NotCoordinator)));
        }
        self.endings.clear();
    }

    /// Who waits for a decision that is being carried out.
    pub(super) fn refuse_parked(&mut self, turn: &mut Turn) {
        for waiting in std::mem::take(&mut self.waiting).into_values().flatten() {
            turn.held.push(Post::Answer(waiting.to, Answer::Refused(Refusal::NotCoordinator)));
        }
    }
}

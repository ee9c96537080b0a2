//! A tool's marker: ended as a whole by a decision, waited for, or sent on to the partition.

use super::ending::Want;
use super::wait::{Until, Waiting, patience_ms};
use super::{Effects, LedgerOwner, Then};
use crate::engine::ledger::tools::ToolMark;
use crate::engine::partition::AdminMark;
use crate::engine::txn::State;
use crate::engine::txn::end::Cause;
use crate::engine::{Now, Outcome, PartId, Refusal, ReplyTo, TransactionalId};
use crate::runtime::post::{Answer, Command, PartLetter, Post};

impl LedgerOwner {
    /// One marker for one partition. It goes on to the partition at once, not when this turn's rows are flushed: a permission
    /// that a later turn gives there must come behind it.
    pub(super) fn write_marker(
        &mut self,
        (part, to): (PartId, ReplyTo),
        mark: &AdminMark,
        now: Now,
        effects: &mut Effects,
    ) {
        let command = Command::WriteMarkers { mark: *mark, parts: vec![(part, to)] };
        match self.ledger.judge_tool_mark(mark, part) {
            Ok(ToolMark::InPartition) => {
                effects.at_once.push(Post::Part(part, PartLetter::AdminMark { mark: *mark, to }));
            }
            Ok(ToolMark::EndWhole { id, number }) => {
                let want = Want { asked: Some((to, command)), outcome: mark.outcome, cause: Cause::Admin };
                self.begin((&id, number), want, effects);
            }
            Ok(ToolMark::UnderWay { id }) => {
                let until_mono_ms = now.mono_ms.saturating_add(patience_ms(&command));
                let how = Until::Over { outcome: mark.outcome, command };
                effects.then.push(Then::Wait { id, waiting: Waiting { to, how, until_mono_ms } });
            }
            Err(refusal) => effects.answer(to, Answer::Refused(refusal)),
        }
    }

    /// An open transaction is aborted, and its producer fenced. One whose abort is being carried out is waited for; where
    /// nothing is open there is nothing to abort.
    pub(super) fn abort_for_operator(
        &mut self,
        (to, command): (ReplyTo, &Command),
        id: &TransactionalId,
        now: Now,
        effects: &mut Effects,
    ) {
        let txn = match self.ledger.known_by_operator(id) {
            Ok(txn) => txn,
            Err(refusal) => return effects.answer(to, Answer::Refused(refusal)),
        };
        match (txn.ongoing().map(|ongoing| ongoing.number), self.ledger.is_owing(id), &txn.state) {
            (Some(number), _, _) => {
                let asked = Some((to, command.clone()));
                self.begin((id, number), Want { asked, outcome: Outcome::Abort, cause: Cause::Admin }, effects);
            }
            (None, true, State::Ended { outcome: Outcome::Abort, .. }) => {
                let until_mono_ms = now.mono_ms.saturating_add(patience_ms(command));
                let how = Until::Over { outcome: Outcome::Abort, command: command.clone() };
                effects.then.push(Then::Wait { id: id.clone(), waiting: Waiting { to, how, until_mono_ms } });
            }
            (None, _, _) => effects.answer(to, Answer::Refused(Refusal::InvalidTxnState)),
        }
    }
}

//! SyncGroup: the leader's assignment, and everyone's share of it (G-441 to G-447).

use std::sync::Arc;

use super::{Elected, Group, Stable, State, Step, Sync, SyncAnswer};
use crate::engine::{MemberId, Now, Refusal, ReplyTo};

impl Group {
    /// SyncGroup to this group. The leader's makes the group Stable and answers everyone parked, all in this step; the
    /// answers wait for the row, as [`Step`] says.
    pub fn sync(&self, sync: &Sync, reply: ReplyTo, now: Now) -> Step {
        let mut step = Step::of(self);
        if let Err(refusal) = self.check_sync(sync) {
            step.answer(reply, SyncAnswer::refused(refusal));
            return step;
        }
        let member = &sync.claim.member;
        match &mut step.next.state {
            State::Empty { .. } | State::Preparing(_) => {}
            State::Stable(stable) => {
                stable.barrier.missing.remove(member);
                step.next.restart_session(member, now);
                step.answer_sync(member, reply);
            }
            State::Completing(completing) => {
                completing.barrier.missing.remove(member);
                let earlier = completing.parked.insert(member.clone(), reply);
                let leads = completing.elected.leader == *member;
                if let Some(earlier) = earlier {
                    step.answer(earlier, SyncAnswer::refused(Refusal::RebalanceInProgress));
                }
                if leads {
                    step.settle(sync, now);
                }
            }
        }
        step
    }

    /// The row of a leader's SyncGroup could not be stored, so that step is void: everyone parked is told `refusal` and
    /// the group rebalances (G-446). The leader's own request, which this value never saw, is its caller's to answer.
    pub fn sync_not_stored(&self, refusal: Refusal, now: Now) -> Step {
        let mut step = Step::of(self);
        if let State::Completing(completing) = &mut step.next.state {
            for reply in std::mem::take(&mut completing.parked).into_values() {
                step.answers.push((reply, SyncAnswer::refused(refusal).into()));
            }
            step.settle_after_removal(now);
        }
        step
    }

    fn check_sync(&self, sync: &Sync) -> Result<(), Refusal> {
        self.recognise(&sync.claim.member, sync.claim.instance.as_ref())?;
        if sync.claim.generation != self.generation {
            return Err(Refusal::IllegalGeneration);
        }
        let differs = |said: &Option<String>, is: Option<&Arc<str>>| {
            said.as_deref().zip(is).is_some_and(|(said, is)| said != &**is)
        };
        let chosen = self.elected().map(|elected| &elected.protocol);
        if differs(&sync.protocol_type, self.protocol_type.as_ref()) || differs(&sync.protocol, chosen) {
            return Err(Refusal::InconsistentGroupProtocol);
        }
        match &self.state {
            State::Empty { .. } => Err(Refusal::UnknownMemberId),
            State::Preparing(_) => Err(Refusal::RebalanceInProgress),
            State::Completing(_) | State::Stable(_) => Ok(()),
        }
    }

    fn sync_answer(&self, id: &MemberId, elected: &Elected) -> SyncAnswer {
        SyncAnswer {
            refusal: None,
            protocol_type: self.protocol_type.clone(),
            protocol: Some(Arc::clone(&elected.protocol)),
            assignment: self.roster.get(id).map(|m| m.assignment.clone()).unwrap_or_default(),
        }
    }
}

impl Step {
    /// Everyone's share is known (G-444). Members that have not asked yet are still waited for, and served then.
    fn settle(&mut self, sync: &Sync, now: Now) {
        let State::Completing(completing) = &mut self.next.state else {
            return;
        };
        let parked = std::mem::take(&mut completing.parked);
        let (elected, barrier) = (completing.elected.clone(), completing.barrier.clone());
        self.next.state = State::Stable(Stable { elected, barrier });
        self.next.roster.assign(&sync.assignments);
        self.store_row();
        for (id, reply) in parked {
            self.next.restart_session(&id, now);
            self.answer_sync(&id, reply);
        }
    }

    fn answer_sync(&mut self, id: &MemberId, reply: ReplyTo) {
        let answer = match self.next.elected() {
            Some(elected) => self.next.sync_answer(id, elected),
            None => SyncAnswer::refused(Refusal::RebalanceInProgress),
        };
        self.answer(reply, answer);
    }
}

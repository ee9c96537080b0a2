//! A member's staying and going: heartbeat, leave, and what happens when it falls silent.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Group, GroupAnswer, LeaveAnswer, LeavingMember, State, Step};
use crate::engine::{Claim, MemberId, Now, Refusal, ReplyTo};

/// What a LeaveGroup's entry amounts to.
enum Leaver {
    Member(MemberId),
    /// It was given an id and never joined with it.
    Pending(MemberId),
}

impl Group {
    /// Heartbeat to this group (G-451). In a rebalance the member is told so, and its session starts anew all the same.
    pub fn heartbeat(&self, claim: &Claim, reply: ReplyTo, now: Now) -> Step {
        let mut step = Step::of(self);
        let verdict = self.check_heartbeat(claim);
        if matches!(verdict, Ok(()) | Err(Refusal::RebalanceInProgress)) {
            step.next.restart_session(&claim.member, now);
        }
        step.answer(reply, GroupAnswer::Heartbeat(verdict));
        step
    }

    fn check_heartbeat(&self, claim: &Claim) -> Result<(), Refusal> {
        self.recognise(&claim.member, claim.instance.as_ref())?;
        if claim.generation != self.generation {
            return Err(Refusal::IllegalGeneration);
        }
        match &self.state {
            State::Empty { .. } => Err(Refusal::UnknownMemberId),
            State::Preparing(_) => Err(Refusal::RebalanceInProgress),
            State::Completing(_) | State::Stable(_) => Ok(()),
        }
    }

    /// LeaveGroup to this group (G-457): each entry by itself, then at most one rebalance for all of them.
    pub fn leave(&self, leaving: &[LeavingMember], reply: ReplyTo, now: Now) -> Step {
        let mut step = Step::of(self);
        let mut left = Vec::new();
        let mut removed = false;
        for entry in leaving {
            let verdict = step.next.leaver(entry);
            let refusal = verdict.as_ref().err().copied();
            match verdict {
                Ok(Leaver::Member(id)) => {
                    step.remove(&id);
                    removed = true;
                }
                Ok(Leaver::Pending(id)) => {
                    Arc::make_mut(&mut step.next.pending).remove(&id);
                }
                Err(_) => {}
            }
            left.push(LeaveAnswer { leaving: entry.clone(), refusal });
        }
        if removed {
            step.settle_after_removal(now);
        } else {
            // Someone who never was a member has gone: no reason to rebalance, but maybe the last to be awaited (R).
            step.complete_if_all_joined(now);
        }
        step.answer(reply, GroupAnswer::Left(left));
        step
    }

    fn leaver(&self, entry: &LeavingMember) -> Result<Leaver, Refusal> {
        if entry.member.is_empty() {
            let holder = entry.instance.as_ref().and_then(|instance| self.roster.holder(instance));
            return holder.cloned().map(Leaver::Member).ok_or(Refusal::UnknownMemberId);
        }
        if self.pending.contains_key(&entry.member) {
            return Ok(Leaver::Pending(entry.member.clone()));
        }
        self.recognise(&entry.member, entry.instance.as_ref())?;
        Ok(Leaver::Member(entry.member.clone()))
    }

    /// Handles every timer that is due (G-408); `None` when none is. A new timer may be due at once, so ask
    /// [`Group::deadline`] again.
    #[must_use]
    pub fn expire(&self, now: Now) -> Option<Step> {
        if self.deadline()? > now.mono_ms {
            return None;
        }
        let mut step = Step::of(self);
        step.expire_sessions(now);
        if step.next.phase_deadline().is_some_and(|until| until <= now.mono_ms) {
            step.expire_phase(now);
        }
        Some(step)
    }
}

impl Step {
    fn expire_sessions(&mut self, now: Now) {
        let group = &mut self.next;
        let silent = |(id, until): &(&MemberId, &i64)| **until <= now.mono_ms && !group.waits_for_us(id);
        let gone: Vec<MemberId> = group.sessions.iter().filter(silent).map(|(id, _)| id.clone()).collect();
        if group.pending.values().any(|until| *until <= now.mono_ms) {
            let in_time = group.pending.iter().filter(|(_, until)| **until > now.mono_ms);
            let in_time: BTreeMap<MemberId, i64> = in_time.map(|(id, until)| (id.clone(), *until)).collect();
            group.pending = Arc::new(in_time);
        }
        for id in &gone {
            self.remove(id);
        }
        if gone.is_empty() {
            self.complete_if_all_joined(now);
        } else {
            self.settle_after_removal(now);
        }
    }

    fn expire_phase(&mut self, now: Now) {
        let missing = match &self.next.state {
            State::Empty { .. } => return,
            State::Preparing(_) => return self.expire_join_phase(now),
            State::Completing(completing) => completing.barrier.missing.clone(),
            State::Stable(stable) => stable.barrier.missing.clone(),
        };
        // G-407i: they joined and never synced.
        for id in &missing {
            self.remove(id);
        }
        self.settle_after_removal(now);
    }
}

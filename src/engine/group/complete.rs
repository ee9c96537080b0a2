//! The join phase: opening a rebalance, and ending it when everyone is here or time is up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Barrier, Completing, Elected, Group, JoinAnswer, JoinedMember, Preparing, State, Step, SyncAnswer, Wait};
use crate::engine::{MemberId, Now, Refusal, ReplyTo};

/// Shortest wait for static members of whom none has come back. They may have asked for 0, and then an owner that
/// waits for the next deadline would spin until their sessions end.
const MIN_REPEATED_WAIT_MS: i64 = 1000;

impl Step {
    /// Turns a settled group to collecting JoinGroups (G-407b, c). Does not look whether that is over already.
    pub(super) fn open_rebalance(&mut self, now: Now) {
        let leader = match &mut self.next.state {
            State::Empty { .. } | State::Preparing(_) => return,
            State::Completing(completing) => {
                let leader = completing.elected.leader.clone();
                let parked = std::mem::take(&mut completing.parked);
                for reply in parked.into_values() {
                    self.answer(reply, SyncAnswer::refused(Refusal::RebalanceInProgress));
                }
                self.next.roster.assign(&[]);
                leader
            }
            State::Stable(stable) => stable.elected.leader.clone(),
        };
        let until_ms = now.mono_ms.saturating_add(self.next.roster.rebalance_timeout_ms());
        self.next.state = State::Preparing(Preparing {
            wait: Wait::Joining { until_ms },
            leader: Some(leader),
            parked: BTreeMap::new(),
            newcomers: BTreeSet::new(),
        });
    }

    /// What follows when members have gone: a settled group rebalances, a rebalance may be complete (G-435).
    pub(super) fn settle_after_removal(&mut self, now: Now) {
        self.open_rebalance(now);
        self.complete_if_all_joined(now);
    }

    /// Ends the join phase if nobody else is awaited (G-407d). An initial delay is sat out, unless everyone has gone.
    pub(super) fn complete_if_all_joined(&mut self, now: Now) {
        let State::Preparing(preparing) = &self.next.state else {
            return;
        };
        let all_parked = preparing.parked.len() == self.next.roster.len() && self.next.pending.is_empty();
        let over = match preparing.wait {
            Wait::Initial { delay_ms, .. } => self.next.roster.is_empty() || delay_ms == 0,
            Wait::Joining { .. } => self.next.roster.is_empty() || all_parked,
        };
        if over {
            self.complete(now);
        }
    }

    /// The initial delay or the join time is over (G-407e, G-433).
    pub(super) fn expire_join_phase(&mut self, now: Now) {
        let State::Preparing(preparing) = &mut self.next.state else {
            return;
        };
        if let Wait::Initial { delay_ms, rest_ms, grew: true, .. } = preparing.wait
            && rest_ms > 0
        {
            preparing.wait = Wait::Initial {
                until_ms: now.mono_ms.saturating_add(delay_ms.min(rest_ms)),
                delay_ms,
                rest_ms: rest_ms.saturating_sub(delay_ms).max(0),
                grew: false,
            };
        } else {
            self.complete(now);
        }
    }

    /// Ends the join phase (G-431).
    fn complete(&mut self, now: Now) {
        let State::Preparing(preparing) = &mut self.next.state else {
            return;
        };
        let leader = preparing.leader.clone();
        let parked = preparing.parked.clone();
        let left_behind = |m: &&Arc<super::Member>| m.instance.is_none() && !parked.contains_key(&m.id);
        let gone: Vec<MemberId> = self.next.roster.iter().filter(left_behind).map(|m| m.id.clone()).collect();
        for id in &gone {
            self.remove(id);
        }
        if self.next.roster.is_empty() {
            self.become_empty(now);
        } else if parked.is_empty() {
            self.wait_again(now);
        } else {
            self.begin_generation(leader, parked, now);
        }
    }

    fn become_empty(&mut self, now: Now) {
        self.next.generation = self.next.generation.saturating_add(1);
        self.next.state = State::Empty { since_ms: now.wall_ms };
        self.store_row();
    }

    /// Only static members are left and none is here: they are waited for until their sessions end (G-431.2).
    fn wait_again(&mut self, now: Now) {
        let wait_ms = self.next.roster.rebalance_timeout_ms().max(MIN_REPEATED_WAIT_MS);
        if let State::Preparing(preparing) = &mut self.next.state {
            preparing.wait = Wait::Joining { until_ms: now.mono_ms.saturating_add(wait_ms) };
        }
    }

    fn begin_generation(&mut self, led: Option<MemberId>, parked: BTreeMap<MemberId, ReplyTo>, now: Now) {
        let group = &mut self.next;
        let oldest = || group.roster.iter().filter(|m| parked.contains_key(&m.id)).min_by_key(|m| m.place);
        let leader = led.filter(|id| parked.contains_key(id)).or_else(|| oldest().map(|m| m.id.clone()));
        let Some(leader) = leader else { return };
        group.generation = group.generation.saturating_add(1);
        group.restart_sessions(now);
        let until_ms = now.mono_ms.saturating_add(group.roster.rebalance_timeout_ms());
        let protocol = group.roster.elect(&leader);
        group.state = State::Completing(Completing {
            elected: Elected { leader, protocol },
            barrier: Barrier { missing: group.roster.ids(), until_ms },
            parked: BTreeMap::new(),
        });
        for (id, reply) in parked {
            let answer = self.next.join_answer(&id);
            self.answer(reply, answer);
        }
    }

    /// Takes a member out of every place it stands in. What it had parked is answered UNKNOWN_MEMBER_ID (G-435).
    pub(super) fn remove(&mut self, id: &MemberId) {
        self.next.roster.remove(id);
        if self.next.sessions.contains_key(id) {
            Arc::make_mut(&mut self.next.sessions).remove(id);
        }
        let parked = self.unpark(id);
        match &mut self.next.state {
            State::Empty { .. } => {}
            State::Preparing(preparing) => {
                preparing.newcomers.remove(id);
            }
            State::Completing(completing) => {
                completing.barrier.missing.remove(id);
            }
            State::Stable(stable) => {
                stable.barrier.missing.remove(id);
            }
        }
        if let Some(reply) = parked {
            self.refuse_parked(reply, Refusal::UnknownMemberId, MemberId::from(""));
        }
    }

    /// Takes back what the member has parked.
    pub(super) fn unpark(&mut self, id: &MemberId) -> Option<ReplyTo> {
        match &mut self.next.state {
            State::Preparing(preparing) => preparing.parked.remove(id),
            State::Completing(completing) => completing.parked.remove(id),
            State::Empty { .. } | State::Stable(_) => None,
        }
    }

    /// Refuses a request that was parked in the state the group is in: a JoinGroup or a SyncGroup.
    pub(super) fn refuse_parked(&mut self, reply: ReplyTo, refusal: Refusal, member: MemberId) {
        match &self.next.state {
            State::Preparing(_) => self.answer(reply, JoinAnswer::refused(refusal, member)),
            State::Completing(_) => self.answer(reply, SyncAnswer::refused(refusal)),
            State::Empty { .. } | State::Stable(_) => {}
        }
    }
}

impl Group {
    /// The current generation as `id` is told of it: with everyone's metadata if it leads (G-420).
    pub(super) fn join_answer(&self, id: &MemberId) -> JoinAnswer {
        let Some(elected) = self.elected() else {
            return JoinAnswer::refused(Refusal::RebalanceInProgress, id.clone());
        };
        JoinAnswer {
            refusal: None,
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: Some(Arc::clone(&elected.protocol)),
            leader: elected.leader.clone(),
            member: id.clone(),
            members: if elected.leader == *id { self.joined_members(&elected.protocol) } else { Vec::new() },
            skip_assignment: false,
        }
    }

    fn joined_members(&self, protocol: &str) -> Vec<JoinedMember> {
        let joined = |m: &Arc<super::Member>| JoinedMember {
            member: m.id.clone(),
            instance: m.instance.clone(),
            metadata: m.metadata(protocol),
        };
        self.roster.iter().map(joined).collect()
    }
}

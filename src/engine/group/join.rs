//! JoinGroup: who may join, and as whom (G-411 to G-427).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::{Group, Join, JoinAnswer, JoinVersion, Member, Preparing, Settings, State, Step, Wait};
use crate::engine::{MemberId, Now, Refusal, ReplyTo};

/// First session of a member that has never been answered (G-402, G-434).
const NEWCOMER_SESSION_MS: i64 = 300_000;

/// Ids given out and not used that a group remembers. Beyond it the one that would expire first is forgotten, and its
/// owner is told UNKNOWN_MEMBER_ID and asks for another: a client that only ever asks for ids cannot fill the memory.
const MAX_PENDING: usize = 10_000;

/// As whom a JoinGroup is let in.
enum Entry {
    /// Not yet: it is given an id to come again with (G-412).
    Given,
    /// A new member under this id.
    New(MemberId),
    /// A static member's new process, in the place of this id (G-426).
    Replaces(MemberId),
    /// A member that is in already.
    Again,
}

/// JoinGroup to a group that does not exist: makes one, stored with the step (G-411).
///
/// # Errors
/// The answer to give when no group is to be made of it: a member id that nobody can have been given, or a request
/// that no group would take.
pub fn join_unknown(join: &Join, reply: ReplyTo, settings: &Settings, now: Now) -> Result<Step, JoinAnswer> {
    let group = Group::new(now);
    let verdict = check_session(join, settings).and_then(|()| {
        let known = if join.member.is_empty() { Ok(()) } else { Err(Refusal::UnknownMemberId) };
        known.and_then(|()| group.check_protocols(join))
    });
    match verdict {
        Ok(()) => Ok(Step { stored: true, ..group.join(join, reply, settings, now) }),
        Err(refusal) => Err(JoinAnswer::refused(refusal, join.member.clone())),
    }
}

fn check_session(join: &Join, settings: &Settings) -> Result<(), Refusal> {
    let allowed = settings.min_session_timeout_ms..=settings.max_session_timeout_ms;
    if allowed.contains(&join.session_timeout_ms) { Ok(()) } else { Err(Refusal::InvalidSessionTimeout) }
}

impl Group {
    /// JoinGroup to this group. A refusal is an answer of the step, because it may come with a change: an id given
    /// out with MEMBER_ID_REQUIRED, a member removed because the group is full.
    pub fn join(&self, join: &Join, reply: ReplyTo, settings: &Settings, now: Now) -> Step {
        let mut step = Step::of(self);
        if let Err(refusal) = check_session(join, settings) {
            step.answer(reply, JoinAnswer::refused(refusal, join.member.clone()));
        } else if !self.has_room(join, settings) {
            step.refuse_as_full(join, reply, now);
        } else {
            match self.check_protocols(join).and_then(|()| self.entry(join)) {
                Err(refusal) => step.answer(reply, JoinAnswer::refused(refusal, join.member.clone())),
                Ok(Entry::Given) => step.give_id(join, reply, now),
                Ok(Entry::New(id)) => step.add(id, join, reply, (settings, now)),
                Ok(Entry::Replaces(old)) => step.replace(&old, join, reply, now),
                Ok(Entry::Again) => step.rejoin(join, reply, now),
            }
        }
        step
    }

    /// The member a JoinGroup speaks for, also when it knows only its instance.
    fn spoken_for<'a>(&'a self, join: &'a Join) -> &'a MemberId {
        let holder = join.instance.as_ref().and_then(|instance| self.roster.holder(instance));
        holder.filter(|_| join.member.is_empty()).unwrap_or(&join.member)
    }

    /// The size limit (G-418). In a rebalance it counts who has come, so that the rest of a group that has become too
    /// big stays outside.
    fn has_room(&self, join: &Join, settings: &Settings) -> bool {
        let id = self.spoken_for(join);
        match &self.state {
            State::Empty { .. } => true,
            State::Preparing(preparing) => {
                preparing.parked.contains_key(id) || preparing.parked.len() < settings.max_size
            }
            State::Completing(_) | State::Stable(_) => {
                self.roster.contains(id) || self.roster.len() < settings.max_size
            }
        }
    }

    fn check_protocols(&self, join: &Join) -> Result<(), Refusal> {
        let fits = if self.roster.is_empty() {
            !join.protocol_type.is_empty() && !join.protocols.is_empty()
        } else {
            self.protocol_type.as_deref() == Some(join.protocol_type.as_str())
                && self.roster.all_speak_one_of(&join.protocols)
        };
        if fits { Ok(()) } else { Err(Refusal::InconsistentGroupProtocol) }
    }

    fn entry(&self, join: &Join) -> Result<Entry, Refusal> {
        if join.member.is_empty() {
            let holder = join.instance.as_ref().map(|instance| self.roster.holder(instance));
            return Ok(match holder {
                None if join.version >= JoinVersion::V4 => Entry::Given,
                None | Some(None) => Entry::New(join.fresh_member.clone()),
                Some(Some(old)) => Entry::Replaces(old.clone()),
            });
        }
        if self.pending.contains_key(&join.member) {
            // An id is given out to dynamic members only, so this is not its owner (G-421 R).
            let known = join.instance.is_none();
            return if known { Ok(Entry::New(join.member.clone())) } else { Err(Refusal::UnknownMemberId) };
        }
        self.recognise(&join.member, join.instance.as_ref())?;
        Ok(Entry::Again)
    }
}

impl Step {
    /// G-418: told 81 without an id; a member of that id has lost its place, and so has an id that was given out, or
    /// it would hold up the others (G-407d).
    fn refuse_as_full(&mut self, join: &Join, reply: ReplyTo, now: Now) {
        self.answer(reply, JoinAnswer::refused(Refusal::GroupMaxSizeReached, MemberId::from("")));
        if self.next.pending.contains_key(&join.member) {
            Arc::make_mut(&mut self.next.pending).remove(&join.member);
            self.complete_if_all_joined(now);
        } else if self.next.recognise(&join.member, join.instance.as_ref()).is_ok() {
            self.remove(&join.member);
            self.settle_after_removal(now);
        }
    }

    fn give_id(&mut self, join: &Join, reply: ReplyTo, now: Now) {
        let until = now.mono_ms.saturating_add(i64::from(join.session_timeout_ms));
        let pending = Arc::make_mut(&mut self.next.pending);
        if pending.len() >= MAX_PENDING {
            let first = pending.iter().min_by_key(|(_, until)| **until).map(|(id, _)| id.clone());
            first.and_then(|id| pending.remove(&id));
        }
        pending.insert(join.fresh_member.clone(), until);
        self.answer(reply, JoinAnswer::refused(Refusal::MemberIdRequired, join.fresh_member.clone()));
    }

    fn add(&mut self, id: MemberId, join: &Join, reply: ReplyTo, (settings, now): (&Settings, Now)) {
        if self.next.pending.contains_key(&id) {
            Arc::make_mut(&mut self.next.pending).remove(&id);
        }
        if self.next.roster.is_empty() {
            self.next.protocol_type = Some(Arc::from(join.protocol_type.as_str()));
        }
        let place = self.next.roster.next_place();
        self.next.roster.put(member_of(join, id.clone(), place, Bytes::new()));
        let until = now.mono_ms.saturating_add(NEWCOMER_SESSION_MS);
        Arc::make_mut(&mut self.next.sessions).insert(id.clone(), until);
        self.open_initial(settings, now);
        self.open_rebalance(now);
        if let State::Preparing(preparing) = &mut self.next.state {
            preparing.newcomers.insert(id.clone());
            if let Wait::Initial { grew, .. } = &mut preparing.wait {
                // The first one opened the wait; only others prolong it.
                *grew = place > 0;
            }
        }
        self.park_join(&id, reply);
        self.complete_if_all_joined(now);
    }

    /// The first member of an empty group: others are waited for (G-433).
    fn open_initial(&mut self, settings: &Settings, now: Now) {
        if !matches!(self.next.state, State::Empty { .. }) {
            return;
        }
        let delay_ms = i64::from(settings.initial_rebalance_delay_ms).max(0);
        let until_ms = now.mono_ms.saturating_add(delay_ms);
        let rest_ms = self.next.roster.rebalance_timeout_ms().saturating_sub(delay_ms).max(0);
        let wait = Wait::Initial { until_ms, delay_ms, rest_ms, grew: false };
        let (parked, newcomers) = (BTreeMap::new(), BTreeSet::new());
        self.next.state = State::Preparing(Preparing { wait, leader: None, parked, newcomers });
    }

    fn rejoin(&mut self, join: &Join, reply: ReplyTo, now: Now) {
        let Some(member) = self.next.roster.get(&join.member) else {
            return;
        };
        // G-415: the same names in the same order with the same bytes.
        let same = member.protocols == join.protocols;
        let settled = match &self.next.state {
            State::Empty { .. } | State::Preparing(_) => false,
            State::Completing(_) => same,
            State::Stable(stable) => same && stable.elected.leader != join.member,
        };
        if settled {
            let answer = self.next.join_answer(&join.member);
            self.answer(reply, answer);
            return;
        }
        let (place, assignment) = (member.place, member.assignment.clone());
        let mut updated = member_of(join, join.member.clone(), place, assignment);
        updated.instance.clone_from(&member.instance);
        self.next.roster.put(updated);
        self.open_rebalance(now);
        self.park_join(&join.member, reply);
        self.complete_if_all_joined(now);
    }

    /// Parks a JoinGroup in place of an earlier one of the same member, which is told to ask again (G-419 R).
    fn park_join(&mut self, id: &MemberId, reply: ReplyTo) {
        let State::Preparing(preparing) = &mut self.next.state else {
            return;
        };
        if let Some(earlier) = preparing.parked.insert(id.clone(), reply) {
            self.answer(earlier, JoinAnswer::refused(Refusal::RebalanceInProgress, id.clone()));
        }
    }

    /// A static member's new process takes the old one's place (G-426).
    fn replace(&mut self, old: &MemberId, join: &Join, reply: ReplyTo, now: Now) {
        let Some(member) = self.next.roster.get(old) else {
            return;
        };
        let new = join.fresh_member.clone();
        let successor = member_of(join, new.clone(), member.place, member.assignment.clone());
        let led_before = self.next.elected().map(|elected| elected.leader.clone());
        if let Some(reply) = self.unpark(old) {
            self.refuse_parked(reply, Refusal::FencedInstanceId, old.clone());
        }
        self.next.roster.remove(old);
        self.next.roster.put(successor);
        self.next.rename(old, &new, now);
        if self.next.chosen_protocol_stands() {
            let answer = self.next.answer_replacement(&new, join, led_before);
            self.answer(reply, answer);
            self.store_row();
        } else {
            self.open_rebalance(now);
            self.park_join(&new, reply);
            self.complete_if_all_joined(now);
        }
    }
}

impl Group {
    /// Moves what the state knows of `old` to `new`, the barrier too, so that the old id causes no rebalance later
    /// (G-427 R).
    fn rename(&mut self, old: &MemberId, new: &MemberId, now: Now) {
        Arc::make_mut(&mut self.sessions).remove(old);
        self.restart_session(new, now);
        match &mut self.state {
            State::Empty { .. } => {}
            State::Preparing(preparing) => {
                preparing.leader = preparing.leader.take().map(|id| if id == *old { new.clone() } else { id });
                if preparing.newcomers.remove(old) {
                    preparing.newcomers.insert(new.clone());
                    let until = now.mono_ms.saturating_add(NEWCOMER_SESSION_MS);
                    Arc::make_mut(&mut self.sessions).insert(new.clone(), until);
                }
            }
            State::Completing(completing) => {
                completing.elected.rename(old, new);
                completing.barrier.rename(old, new);
            }
            State::Stable(stable) => {
                stable.elected.rename(old, new);
                stable.barrier.rename(old, new);
            }
        }
    }

    /// Whether the group is Stable and would choose its protocol again.
    fn chosen_protocol_stands(&self) -> bool {
        match &self.state {
            State::Stable(stable) => self.roster.elect(&stable.elected.leader) == stable.elected.protocol,
            State::Empty { .. } | State::Preparing(_) | State::Completing(_) => false,
        }
    }

    /// A client older than version 9 that led is told the *old* leader's id and no members, so that it acts as a
    /// follower and leaves the assignment alone.
    fn answer_replacement(&self, new: &MemberId, join: &Join, led_before: Option<MemberId>) -> JoinAnswer {
        let mut answer = self.join_answer(new);
        if join.version >= JoinVersion::V9 {
            answer.skip_assignment = answer.leader == *new;
        } else {
            answer.leader = led_before.unwrap_or(answer.leader);
            answer.members.clear();
        }
        answer
    }
}

fn member_of(join: &Join, id: MemberId, place: u64, assignment: Bytes) -> Member {
    Member {
        id,
        instance: join.instance.clone(),
        client_id: join.client_id.clone(),
        client_host: join.client_host.clone(),
        session_timeout_ms: join.session_timeout_ms,
        rebalance_timeout_ms: join.rebalance_timeout_ms.max(0),
        protocols: join.protocols.clone(),
        assignment,
        place,
    }
}

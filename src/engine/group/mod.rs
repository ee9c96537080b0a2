//! Classic consumer groups: who is in, of which generation, and with which assignment.
//!
//! ```text
//!             a member joins                        all joined, or time is up
//!   Empty ───────────────────→ PreparingRebalance ────────────────────────────→ CompletingRebalance
//!     ↑                          │     ↑   ↑                                      │          │
//!     └── nobody came, or left ──┘     │   └── a member joins, leaves, expires, ──┘          │ the leader's
//!                                      │       is replaced or never syncs                    ↓ SyncGroup
//!                                      └───────────────── the same ────────────────────── Stable
//! ```
//!
//! A [`Group`] is a value. A request is judged on it and gives a [`Step`]: the next value, the answers that follow, and
//! whether the durable row changed. Requests that must wait are data inside the group, as the numbers their answers go
//! under; deadlines are data too. There is no Dead state: one owner takes every letter in order, so a group that is
//! removed is simply unknown to whatever comes after.
//!
//! Only what a SyncGroup agreed on is durable (G-481): joins and the answer of the join phase live in memory, and after
//! a restart the group stands where it last synced (G-485). [`Group::row`] is always that last agreement, also while
//! the group is rebalancing, so a row may be written at any moment.
//!
//! To a group that does not exist, SyncGroup and Heartbeat say `UnknownMemberId` (G-441, G-451), LeaveGroup the same
//! for each member (G-456); for the others see [`join_unknown`] and [`commit_to_unknown`].

mod answer;
mod commit;
mod complete;
mod describe;
mod expiry;
mod join;
mod member;
mod roster;
mod row;
mod sync;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::engine::{InstanceId, MemberId, Now, Refusal, ReplyTo};

pub use answer::{
    GroupAnswer, Join, JoinAnswer, JoinVersion, JoinedMember, LeaveAnswer, LeavingMember, Settings, Step, Sync,
    SyncAnswer,
};
pub use commit::commit_to_unknown;
pub use describe::{GroupDescription, GroupListing, MemberDescription, STATE_NAMES};
pub use expiry::{OffsetAge, Subscription};
pub use join::join_unknown;
pub use roster::Member;
pub use row::{GroupRow, RowState};

use roster::Roster;

/// A classic group (G-401). Cheap to clone: members are shared, and only what a step touches is copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    generation: i32,
    protocol_type: Option<Arc<str>>,
    roster: Roster,
    /// When each member's session ends, monotonic milliseconds. Holds exactly the roster's ids.
    sessions: Arc<BTreeMap<MemberId, i64>>,
    /// Ids given out by MEMBER_ID_REQUIRED and not yet used, with the end of their session (G-412).
    pending: Arc<BTreeMap<MemberId, i64>>,
    state: State,
    /// What must be on disk: the last generation that synced, or the last time the group was empty.
    row: Arc<GroupRow>,
}

/// Where a group is (G-406).
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// No members. Offsets may exist.
    Empty {
        /// When it became so, wall-clock milliseconds: offsets are kept from here (O-642).
        since_ms: i64,
    },
    /// Collecting JoinGroups.
    Preparing(Preparing),
    /// The generation is fixed and told; the leader's assignment is awaited.
    Completing(Completing),
    /// Everyone's assignment is known.
    Stable(Stable),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Preparing {
    wait: Wait,
    /// Who led the last generation, and leads the next if it comes back in time.
    leader: Option<MemberId>,
    parked: BTreeMap<MemberId, ReplyTo>,
    /// Members that have never been answered: their timer runs even while they are parked (G-434).
    newcomers: BTreeSet<MemberId>,
}

/// What ends the join phase besides everyone's arrival.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wait {
    /// The group was empty: others are given the time to come, even when all known members are here (G-433).
    Initial {
        /// Monotonic milliseconds.
        until_ms: i64,
        /// `group.initial.rebalance.delay.ms` as it was when the wait began.
        delay_ms: i64,
        /// How much longer the wait may be prolonged.
        rest_ms: i64,
        /// Whether a member came during this wait.
        grew: bool,
    },
    /// Monotonic milliseconds at which whoever has not re-joined is left behind.
    Joining { until_ms: i64 },
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Completing {
    elected: Elected,
    barrier: Barrier,
    parked: BTreeMap<MemberId, ReplyTo>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Stable {
    elected: Elected,
    barrier: Barrier,
}

/// What a join phase decided.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Elected {
    leader: MemberId,
    protocol: Arc<str>,
}

/// Who of this generation has not sent SyncGroup, and until when that is suffered (G-407i). Without it a member that
/// joins and never syncs would hold the group for ever (C-83).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Barrier {
    missing: BTreeSet<MemberId>,
    until_ms: i64,
}

impl Barrier {
    fn rename(&mut self, old: &MemberId, new: &MemberId) {
        if self.missing.remove(old) {
            self.missing.insert(new.clone());
        }
    }
}

impl Elected {
    fn rename(&mut self, old: &MemberId, new: &MemberId) {
        if self.leader == *old {
            self.leader = new.clone();
        }
    }
}

impl Group {
    /// A new group: empty, generation 0, no protocol type, which is also what a "simple" group of offsets alone is
    /// (O-652). Whoever makes one stores its row with the step that follows.
    #[must_use]
    pub fn new(now: Now) -> Self {
        let row = GroupRow { generation: 0, protocol_type: None, state: RowState::Empty { since_ms: now.wall_ms } };
        Self {
            generation: 0,
            protocol_type: None,
            roster: Roster::default(),
            sessions: Arc::default(),
            pending: Arc::default(),
            state: State::Empty { since_ms: now.wall_ms },
            row: Arc::new(row),
        }
    }

    /// The current generation; 0 before the first completed join.
    #[must_use]
    pub fn generation(&self) -> i32 {
        self.generation
    }

    /// Whether the group has no members. Ids given out but not used are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.roster.is_empty()
    }

    /// What must be on disk for this group. While it rebalances this is still the generation that last synced (G-481).
    #[must_use]
    pub fn row(&self) -> &Arc<GroupRow> {
        &self.row
    }

    /// The group as it stands after a restart (G-482): every member gets a fresh session. One that holds more members
    /// than `settings` now allow rebalances at once (G-483).
    #[must_use]
    pub fn from_row(row: GroupRow, settings: &Settings, now: Now) -> Self {
        let row = Arc::new(row);
        let mut group = Self {
            generation: row.generation,
            protocol_type: row.protocol_type.clone(),
            row: Arc::clone(&row),
            ..Self::new(now)
        };
        match &row.state {
            RowState::Empty { since_ms } => group.state = State::Empty { since_ms: *since_ms },
            RowState::Stable { leader, protocol, members } => {
                group.roster = Roster::of(members);
                let elected = Elected { leader: leader.clone(), protocol: Arc::clone(protocol) };
                group.state = State::Stable(Stable { elected, barrier: Barrier::default() });
                group.restart_sessions(now);
            }
        }
        if group.roster.len() > settings.max_size {
            let mut step = Step::of(&group);
            step.open_rebalance(now);
            group = step.next;
        }
        group
    }

    /// Answers every parked request NOT_COORDINATOR, as the broker stops (G-484).
    pub fn stop(&self) -> Step {
        let mut step = Step::of(self);
        match &mut step.next.state {
            State::Preparing(preparing) => {
                for (id, reply) in std::mem::take(&mut preparing.parked) {
                    step.answers.push((reply, JoinAnswer::refused(Refusal::NotCoordinator, id).into()));
                }
            }
            State::Completing(completing) => {
                for reply in std::mem::take(&mut completing.parked).into_values() {
                    step.answers.push((reply, SyncAnswer::refused(Refusal::NotCoordinator).into()));
                }
            }
            State::Empty { .. } | State::Stable(_) => {}
        }
        step
    }

    /// When something falls due, monotonic milliseconds; `None` when nothing ever will by itself.
    #[must_use]
    pub fn deadline(&self) -> Option<i64> {
        let sessions = self.sessions.iter().filter(|(id, _)| !self.waits_for_us(id)).map(|(_, until)| *until);
        self.pending.values().copied().chain(sessions).chain(self.phase_deadline()).min()
    }

    /// Whether the member's silence is our doing: it has asked and not been answered, so its session does not run
    /// (G-434). A newcomer's does: the broker could not tell that it has vanished.
    fn waits_for_us(&self, id: &MemberId) -> bool {
        match &self.state {
            State::Preparing(preparing) => preparing.parked.contains_key(id) && !preparing.newcomers.contains(id),
            State::Completing(completing) => completing.parked.contains_key(id),
            State::Empty { .. } | State::Stable(_) => false,
        }
    }

    fn phase_deadline(&self) -> Option<i64> {
        let barrier = match &self.state {
            State::Empty { .. } => return None,
            State::Preparing(preparing) => {
                return Some(match preparing.wait {
                    Wait::Initial { until_ms, .. } | Wait::Joining { until_ms } => until_ms,
                });
            }
            State::Completing(completing) => &completing.barrier,
            State::Stable(stable) => &stable.barrier,
        };
        (!barrier.missing.is_empty()).then_some(barrier.until_ms)
    }

    fn elected(&self) -> Option<&Elected> {
        match &self.state {
            State::Empty { .. } | State::Preparing(_) => None,
            State::Completing(completing) => Some(&completing.elected),
            State::Stable(stable) => Some(&stable.elected),
        }
    }

    /// Whether member and instance belong together and to this group (G-428).
    fn recognise(&self, member: &MemberId, instance: Option<&InstanceId>) -> Result<(), Refusal> {
        if let Some(instance) = instance {
            match self.roster.holder(instance) {
                None => return Err(Refusal::UnknownMemberId),
                Some(holder) if holder != member => return Err(Refusal::FencedInstanceId),
                Some(_) => {}
            }
        }
        if self.roster.contains(member) { Ok(()) } else { Err(Refusal::UnknownMemberId) }
    }

    /// Gives the member its session time-out anew. Never shortens: a newcomer that heartbeats keeps its first time.
    fn restart_session(&mut self, id: &MemberId, now: Now) {
        let Some(member) = self.roster.get(id) else { return };
        let until = now.mono_ms.saturating_add(i64::from(member.session_timeout_ms));
        let session = Arc::make_mut(&mut self.sessions).entry(id.clone()).or_insert(until);
        *session = until.max(*session);
    }

    fn restart_sessions(&mut self, now: Now) {
        let ends = |m: &Member| now.mono_ms.saturating_add(i64::from(m.session_timeout_ms));
        self.sessions = Arc::new(self.roster.iter().map(|m| (m.id.clone(), ends(m))).collect());
    }
}

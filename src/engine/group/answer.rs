//! What a group is asked, and what it says.

use std::sync::Arc;

use bytes::Bytes;

use super::{Group, GroupRow, RowState, State};
use crate::engine::{Claim, InstanceId, MemberId, Refusal, ReplyTo};

/// The broker's settings for groups (G-402).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// `group.min.session.timeout.ms`.
    pub min_session_timeout_ms: i32,
    /// `group.max.session.timeout.ms`.
    pub max_session_timeout_ms: i32,
    /// `group.initial.rebalance.delay.ms`; 0 completes the first join at once.
    pub initial_rebalance_delay_ms: i32,
    /// `group.max.size`: members a group may have.
    pub max_size: usize,
}

/// A JoinGroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join {
    /// The id the client has, empty when it has none.
    pub member: MemberId,
    /// Its `group.instance.id`, if it is static.
    pub instance: Option<InstanceId>,
    /// The request's client id.
    pub client_id: String,
    /// Where it comes from, as tools show it: "/" and the address.
    pub client_host: String,
    /// Milliseconds of silence after which it counts as gone.
    pub session_timeout_ms: i32,
    /// Milliseconds it may need to re-join and to sync; the session time-out in version 0 (G-415).
    pub rebalance_timeout_ms: i32,
    /// "consumer", "connect", …
    pub protocol_type: String,
    /// Names the member can speak, most wanted first, each with its opaque metadata.
    pub protocols: Vec<(String, Bytes)>,
    /// What the request's version makes of it.
    pub version: JoinVersion,
    /// The id to give should a new one be needed (G-414); never used before.
    pub fresh_member: MemberId,
}

/// The JoinGroup versions whose meaning differs, each with those that follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum JoinVersion {
    /// A member without an id is let in at once.
    V0,
    /// A dynamic member without an id is given one and must come again with it (G-412).
    V4,
    /// And a returning static leader can be told to leave the assignment as it is (G-426).
    V9,
}

impl JoinVersion {
    /// Where the request version `version` belongs.
    #[must_use]
    pub fn of(version: i16) -> Self {
        match version {
            ..4 => Self::V0,
            4..9 => Self::V4,
            9.. => Self::V9,
        }
    }
}

/// The answer to a JoinGroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinAnswer {
    /// Why not; the other fields are then as G-417 says.
    pub refusal: Option<Refusal>,
    /// The generation joined, -1 with a refusal.
    pub generation: i32,
    /// The group's protocol type.
    pub protocol_type: Option<Arc<str>>,
    /// The chosen protocol.
    pub protocol: Option<Arc<str>>,
    /// The leader's id, empty with a refusal.
    pub leader: MemberId,
    /// The id the asker goes by from now on.
    pub member: MemberId,
    /// Everyone, for the leader; empty for others.
    pub members: Vec<JoinedMember>,
    /// The assignment stands; the leader must not compute a new one.
    pub skip_assignment: bool,
}

/// A member as the leader is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedMember {
    /// Its id.
    pub member: MemberId,
    /// Its instance id; not sent before version 5 (C-84).
    pub instance: Option<InstanceId>,
    /// Its metadata of the chosen protocol.
    pub metadata: Bytes,
}

impl JoinAnswer {
    /// A refusal, told to whoever asked as `member` (G-417).
    #[must_use]
    pub fn refused(refusal: Refusal, member: MemberId) -> Self {
        Self {
            refusal: Some(refusal),
            generation: -1,
            protocol_type: None,
            protocol: None,
            leader: MemberId::from(""),
            member,
            members: Vec::new(),
            skip_assignment: false,
        }
    }
}

/// A SyncGroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sync {
    /// Who asks.
    pub claim: Claim,
    /// The type it believes in; `None` before version 5, and then not compared (G-441).
    pub protocol_type: Option<String>,
    /// The protocol it believes in; `None` before version 5.
    pub protocol: Option<String>,
    /// Who gets what; heard from the leader only.
    pub assignments: Vec<(MemberId, Bytes)>,
}

/// The answer to a SyncGroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncAnswer {
    /// Why not; the other fields are then empty.
    pub refusal: Option<Refusal>,
    /// The group's protocol type.
    pub protocol_type: Option<Arc<str>>,
    /// The chosen protocol.
    pub protocol: Option<Arc<str>>,
    /// What the asker was assigned, as its leader wrote it; empty is normal (G-447).
    pub assignment: Bytes,
}

impl SyncAnswer {
    /// A refusal.
    #[must_use]
    pub fn refused(refusal: Refusal) -> Self {
        Self { refusal: Some(refusal), protocol_type: None, protocol: None, assignment: Bytes::new() }
    }
}

/// One entry of a LeaveGroup. Before version 3 there is one, without an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeavingMember {
    /// The member's id; empty when only the instance is named, as administrators do.
    pub member: MemberId,
    /// Its instance id.
    pub instance: Option<InstanceId>,
}

/// What became of one entry of a LeaveGroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaveAnswer {
    /// The entry, as it was asked.
    pub leaving: LeavingMember,
    /// Why it did not leave, if it did not.
    pub refusal: Option<Refusal>,
}

/// An answer under some [`ReplyTo`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupAnswer {
    /// To a JoinGroup.
    Joined(JoinAnswer),
    /// To a SyncGroup.
    Synced(SyncAnswer),
    /// To a Heartbeat.
    Heartbeat(Result<(), Refusal>),
    /// To a LeaveGroup: one for each entry, in its order.
    Left(Vec<LeaveAnswer>),
}

impl From<JoinAnswer> for GroupAnswer {
    fn from(answer: JoinAnswer) -> Self {
        Self::Joined(answer)
    }
}

impl From<SyncAnswer> for GroupAnswer {
    fn from(answer: SyncAnswer) -> Self {
        Self::Synced(answer)
    }
}

/// What follows from one request or one deadline.
///
/// While `stored` is set, `next` may become the group and `answers` may be given only after `next.row()` is stored:
/// what a member is told here is what it finds after a crash (G-444, G-486).
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Step {
    /// The group afterwards.
    pub next: Group,
    /// Whom to tell what; a number appears once in its life.
    pub answers: Vec<(ReplyTo, GroupAnswer)>,
    /// Whether `next.row()` differs from the row before.
    pub stored: bool,
}

impl Step {
    /// The step that changes nothing yet.
    pub(super) fn of(group: &Group) -> Self {
        Self { next: group.clone(), answers: Vec::new(), stored: false }
    }

    pub(super) fn answer(&mut self, reply: ReplyTo, answer: impl Into<GroupAnswer>) {
        self.answers.push((reply, answer.into()));
    }

    /// Makes the group as it stands the one to find after a restart. In a rebalance nothing is agreed, so nothing is.
    pub(super) fn store_row(&mut self) {
        let group = &mut self.next;
        let state = match &group.state {
            State::Preparing(_) | State::Completing(_) => return,
            State::Empty { since_ms } => RowState::Empty { since_ms: *since_ms },
            State::Stable(stable) => RowState::Stable {
                leader: stable.elected.leader.clone(),
                protocol: Arc::clone(&stable.elected.protocol),
                members: group.roster.shared(),
            },
        };
        let (generation, protocol_type) = (group.generation, group.protocol_type.clone());
        group.row = Arc::new(GroupRow { generation, protocol_type, state });
        self.stored = true;
    }
}

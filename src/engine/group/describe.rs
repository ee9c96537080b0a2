//! A group as tools are shown it, and what administrators may do to it (G-461 to G-466).

use bytes::Bytes;

use super::{Group, State};
use crate::engine::{InstanceId, MemberId, Refusal};

/// What DescribeGroups shows. An unknown group is "Dead" there (G-462).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupDescription {
    /// "Empty", "PreparingRebalance", "CompletingRebalance" or "Stable".
    pub state: &'static str,
    /// "" for a simple group (G-464).
    pub protocol_type: String,
    /// The chosen protocol in Stable, else "".
    pub protocol: String,
    /// The members.
    pub members: Vec<MemberDescription>,
}

/// A group in ListGroups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupListing {
    /// As [`GroupDescription::state`].
    pub state: &'static str,
    /// "" for a simple group (G-464).
    pub protocol_type: String,
}

/// A member as DescribeGroups shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberDescription {
    /// Its id.
    pub member: MemberId,
    /// Its instance id.
    pub instance: Option<InstanceId>,
    /// Its client id.
    pub client_id: String,
    /// Its host.
    pub client_host: String,
    /// Its metadata of the chosen protocol in Stable, else empty.
    pub metadata: Bytes,
    /// What it was last assigned.
    pub assignment: Bytes,
}

/// The names of all states that a group can be in.
pub const STATE_NAMES: [&str; 4] = ["Empty", "PreparingRebalance", "CompletingRebalance", "Stable"];

impl Group {
    /// How many members there are.
    #[must_use]
    pub fn member_count(&self) -> usize {
        self.sessions.len()
    }

    /// The state's name, as Kafka spells it (G-461).
    #[must_use]
    pub fn state_name(&self) -> &'static str {
        match &self.state {
            State::Empty { .. } => "Empty",
            State::Preparing(_) => "PreparingRebalance",
            State::Completing(_) => "CompletingRebalance",
            State::Stable(_) => "Stable",
        }
    }

    /// "consumer", "connect", …; "" for a simple group. Once set it stays when the members leave (O-652).
    #[must_use]
    pub fn protocol_type(&self) -> &str {
        self.protocol_type.as_deref().unwrap_or_default()
    }

    /// What a list of groups shows.
    #[must_use]
    pub fn listing(&self) -> GroupListing {
        GroupListing { state: self.state_name(), protocol_type: self.protocol_type().to_owned() }
    }

    /// Everything tools are shown.
    #[must_use]
    pub fn describe(&self) -> GroupDescription {
        let protocol = match &self.state {
            State::Stable(stable) => Some(&*stable.elected.protocol),
            State::Empty { .. } | State::Preparing(_) | State::Completing(_) => None,
        };
        let members = self.roster.iter().map(|m| MemberDescription {
            member: m.id.clone(),
            instance: m.instance.clone(),
            client_id: m.client_id.clone(),
            client_host: m.client_host.clone(),
            metadata: protocol.map(|protocol| m.metadata(protocol)).unwrap_or_default(),
            assignment: m.assignment.clone(),
        });
        GroupDescription {
            state: self.state_name(),
            protocol_type: self.protocol_type().to_owned(),
            protocol: protocol.unwrap_or_default().to_owned(),
            members: members.collect(),
        }
    }

    /// Whether DeleteGroups may take it (G-465).
    ///
    /// # Errors
    /// `NonEmptyGroup` while it has members.
    pub fn may_delete(&self) -> Result<(), Refusal> {
        if self.is_empty() { Ok(()) } else { Err(Refusal::NonEmptyGroup) }
    }

    /// Whether OffsetDelete may look at its topics at all; each that [`Group::subscription`] covers is then refused
    /// with `GroupSubscribedToTopic` (G-466).
    ///
    /// # Errors
    /// `NonEmptyGroup` for a group in use of which nobody can say what it reads.
    pub fn may_delete_offsets(&self) -> Result<(), Refusal> {
        if self.is_empty() || self.is_consumer() { Ok(()) } else { Err(Refusal::NonEmptyGroup) }
    }

    pub(super) fn is_consumer(&self) -> bool {
        self.protocol_type() == "consumer"
    }
}

//! Which topics a group reads, and when what it has committed is forgotten (G-467, O-641 to O-644).

use std::collections::BTreeSet;

use crate::engine::{Now, TopicName};

use super::{Group, State};

/// What a group is known to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subscription {
    /// These topics; none when the group is empty.
    Topics(BTreeSet<TopicName>),
    /// The group is in use, and its members' metadata does not say.
    Unknown,
}

impl Subscription {
    /// Whether the topic must be taken as being read. With an unknown subscription every topic is (G-466).
    #[must_use]
    pub fn covers(&self, topic: &TopicName) -> bool {
        match self {
            Self::Topics(topics) => topics.contains(topic),
            Self::Unknown => true,
        }
    }
}

/// When an offset was committed, and until when its client asked to keep it (O-617).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetAge {
    /// Commit time, wall-clock milliseconds.
    pub committed_ms: i64,
    /// Explicit end, wall-clock milliseconds; only OffsetCommit 2 to 4 name one.
    pub expires_ms: Option<i64>,
}

impl Group {
    /// The topics its members subscribe to (G-467). In a rebalance no protocol is chosen, so whatever any of a member's
    /// protocols names counts.
    #[must_use]
    pub fn subscription(&self) -> Subscription {
        if self.is_empty() {
            return Subscription::Topics(BTreeSet::new());
        }
        if !self.is_consumer() {
            return Subscription::Unknown;
        }
        let chosen = self.elected().map(|elected| &*elected.protocol);
        let mut topics = BTreeSet::new();
        for (name, metadata) in self.roster.iter().flat_map(|m| &m.protocols) {
            if chosen.is_some_and(|chosen| chosen != name) {
                continue;
            }
            match subscribed_topics(metadata) {
                Some(named) => topics.extend(named),
                None => return Subscription::Unknown,
            }
        }
        Subscription::Topics(topics)
    }

    /// Whether a committed offset of `topic` is past its time (O-641 to O-644). Never while the group rebalances, or
    /// is in use without saying what it reads. An offset with a pending transactional one beside it is kept whatever
    /// this says (T-826): the caller knows.
    #[must_use]
    pub fn forgets(&self, topic: &TopicName, offset: OffsetAge, retention_ms: i64, now: Now) -> bool {
        let counted_from_ms = match &self.state {
            State::Empty { since_ms } if self.protocol_type.is_some() => *since_ms,
            State::Empty { .. } => offset.committed_ms,
            State::Stable(_) if !self.subscription().covers(topic) => offset.committed_ms,
            State::Stable(_) | State::Preparing(_) | State::Completing(_) => return false,
        };
        let end_ms = offset.expires_ms.unwrap_or_else(|| counted_from_ms.saturating_add(retention_ms));
        now.wall_ms >= end_ms
    }

    /// Whether the group may be removed once it has no offset left, pending ones included (O-644, T-826). Not while an
    /// id it gave out may come back as a member.
    #[must_use]
    pub fn may_vanish(&self) -> bool {
        self.is_empty() && self.pending.is_empty()
    }
}

/// The topics at the front of a consumer's metadata, which every version of it begins with (G-1502): version, then an
/// array of names. `None` if the bytes are not that.
fn subscribed_topics(metadata: &[u8]) -> Option<Vec<TopicName>> {
    let (_version, rest) = metadata.split_first_chunk::<2>()?;
    let (count, mut rest) = rest.split_first_chunk::<4>()?;
    let count = u32::try_from(i32::from_be_bytes(*count)).ok()?;
    let mut topics = Vec::new();
    for _ in 0..count {
        let (length, tail) = rest.split_first_chunk::<2>()?;
        let length = usize::try_from(i16::from_be_bytes(*length)).ok()?;
        let (name, tail) = tail.split_at_checked(length)?;
        topics.push(TopicName::from(std::str::from_utf8(name).ok()?));
        rest = tail;
    }
    Some(topics)
}

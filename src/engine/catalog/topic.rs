//! One topic.

use crate::engine::catalog::TopicSettings;
use crate::engine::catalog::names;
use crate::engine::{PartId, TopicId, TopicName};

/// A topic as it is stored and shared. A topic made again under the same name is another topic: other id, other parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// Its uuid, the same for all its life (M-202).
    pub id: TopicId,
    /// Its name (M-201).
    pub name: TopicName,
    /// Its partitions; the place in the list is the partition's number.
    pub parts: Vec<PartId>,
    /// What was set on it, as given.
    pub settings: TopicSettings,
}

impl Topic {
    /// The id of its partition `index`; none when it has no such partition.
    #[must_use]
    pub fn part(&self, index: i32) -> Option<PartId> {
        self.parts.get(usize::try_from(index).ok()?).copied()
    }

    /// How many partitions it has.
    #[must_use]
    pub fn partition_count(&self) -> i32 {
        i32::try_from(self.parts.len()).unwrap_or(i32::MAX)
    }

    /// Its partitions with their numbers, from 0 on.
    pub fn numbered_parts(&self) -> impl Iterator<Item = (i32, PartId)> {
        (0..).zip(self.parts.iter().copied())
    }

    /// Whether Metadata marks it as internal (M-201).
    #[must_use]
    pub fn is_internal(&self) -> bool {
        names::is_internal(self.name.as_str())
    }
}

/// Whether a drawn uuid may become a topic's id: not one of the reserved ones, and without a '-' in its base64 text,
/// which a command line would take for an option. The drawer draws again until this holds (M-202).
#[must_use]
pub fn is_fit_topic_id(id: TopicId) -> bool {
    /// Sextet that base64 for URLs writes as '-'.
    const DASH: u128 = 62;
    let bits = u128::from_be_bytes(id.0);
    // Twenty-one whole sextets, the last of them two bits above the end; those two bits alone never make a dash.
    let has_dash = (2..=122_u32).step_by(6).any(|shift| bits.wrapping_shr(shift) & 0b11_1111 == DASH);
    bits > 1 && !has_dash
}

//! Which names a topic may have (M-201), and which belong to the broker.

use std::fmt;

/// Longest name of a topic, in characters (M-201).
pub const MAX_NAME_LENGTH: usize = 249;

/// The topic in which Kafka keeps what groups commit.
pub const OFFSETS: &str = "__consumer_offsets";

/// Topics that Kafka keeps for itself and shows as internal (M-201).
const INTERNAL: [&str; 3] = [OFFSETS, "__share_group_state", "__transaction_state"];

/// Kafka's own log of its metadata; never a topic of a client (M-221).
pub(super) const CLUSTER_METADATA: &str = "__cluster_metadata";

/// Why a text cannot name a topic (M-201).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadName {
    /// It has no characters.
    Empty,
    /// It is "." or "..".
    Dots,
    /// It has more than 249 characters.
    TooLong,
    /// It has this character, which is none of `[a-zA-Z0-9._-]`.
    Character(char),
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "The topic name is empty."),
            Self::Dots => write!(f, "A topic cannot be named '.' or '..'."),
            Self::TooLong => write!(f, "The topic name is longer than {MAX_NAME_LENGTH} characters."),
            Self::Character(c) => write!(
                f,
                "The topic name has the character {c:?}; only ASCII letters, digits, '.', '_' and '-' are allowed."
            ),
        }
    }
}

/// Whether `name` may name a topic at all (M-201).
///
/// # Errors
/// What is wrong with it; the code is always 17 INVALID_TOPIC_EXCEPTION.
pub fn check_name(name: &str) -> Result<(), BadName> {
    match name {
        "" => return Err(BadName::Empty),
        "." | ".." => return Err(BadName::Dots),
        _ => {}
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    match name.chars().find(|c| !allowed(*c)) {
        Some(c) => Err(BadName::Character(c)),
        None if name.len() > MAX_NAME_LENGTH => Err(BadName::TooLong),
        None => Ok(()),
    }
}

/// Whether Metadata marks this topic as internal (M-201); such a topic is not deleted on a client's word (M-232 R).
#[must_use]
pub fn is_internal(name: &str) -> bool {
    INTERNAL.contains(&name)
}

/// What two names have in common when their metrics would collide (M-201).
pub(super) fn flattened(name: &str) -> String {
    name.replace('.', "_")
}

//! The words everything else is said in: ids, offsets, producers, time.

use std::fmt;
use std::sync::Arc;

/// Position of a record in its partition.
pub type Offset = i64;

/// A producer's epoch; a higher one fences a lower one. 32767 is never handed to a client (T-0.3).
pub type Epoch = i16;

/// A partition, for ever: never used again after its topic is deleted, so nothing of a topic's earlier life can meet
/// its namesake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartId(pub i64);

/// A topic's uuid, as Kafka's own sixteen bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicId(pub [u8; 16]);

/// Names a waiting request; its answer is posted under this number, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplyTo(pub u64);

/// Who writes: a producer id and the epoch it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Producer {
    /// The producer id, handed out once, never again.
    pub id: i64,
    /// The epoch its holder claims.
    pub epoch: Epoch,
}

/// How a transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// All of it becomes visible.
    Commit,
    /// None of it does.
    Abort,
}

/// One reading of both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Now {
    /// Milliseconds of a clock that never goes back; its zero is the process's start. Deadlines are counted in it.
    pub mono_ms: i64,
    /// Milliseconds since 1970, as the machine believes. For timestamps only: never a condition (T-606).
    pub wall_ms: i64,
}

/// What a client says of its place in a group when it commits, syncs or heartbeats (T-244, G-428).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The generation it believes in; negative when it claims none.
    pub generation: i32,
    /// Its member id, empty when it claims none.
    pub member: MemberId,
    /// Its `group.instance.id`, if it is a static member.
    pub instance: Option<InstanceId>,
}

macro_rules! text_id {
    ($(#[$doc:meta] $name:ident),+ $(,)?) => {$(
        #[$doc]
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Whether the name is the empty text.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(Arc::from(text))
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(Arc::from(text))
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
    )+};
}

text_id! {
    /// A `transactional.id`.
    TransactionalId,
    /// A group's id.
    GroupId,
    /// A member's id within its group.
    MemberId,
    /// A static member's `group.instance.id`.
    InstanceId,
    /// A topic's name.
    TopicName,
}

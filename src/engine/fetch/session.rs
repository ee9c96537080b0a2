//! One fetch session (KIP-227): the partitions that a client reads, where it stands in each, and what it was last told.
//!
//! An answer may leave a partition out only if it would say what the client knows already, in every number of it; whatever
//! was refused, or is another partition by now, is told (F-712, F-713).

use std::collections::BTreeMap;

use super::{Bounds, Position};
use crate::engine::{PartId, TopicName};

/// What a client wants of one partition. It names the topic; what stands under the name may be deleted and made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The topic.
    pub topic: TopicName,
    /// The partition's number.
    pub index: i32,
    /// Where the client reads on.
    pub position: Position,
    /// Bytes it wants at most.
    pub max_bytes: usize,
}

/// What an answer says of a partition that can be read, besides records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// Which partition stood under the name.
    pub part: PartId,
    /// Its offsets.
    pub bounds: Bounds,
}

/// What one partition is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// An error.
    Refused,
    /// That the client's log parted from ours.
    Diverged(Told),
    /// Nothing but its offsets.
    Empty(Told),
    /// Records.
    Records(Told),
}

/// A session between two requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Session {
    /// By place: partitions are read in this order.
    places: BTreeMap<u64, Held>,
    by_name: BTreeMap<(TopicName, i32), u64>,
    next_place: u64,
    bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Held {
    wanted: Wanted,
    /// `None` when the next answer must have the partition in any case.
    told: Option<Told>,
}

/// What a partition takes in memory besides its topic's name, about.
const HELD_BYTES: usize = 256;

impl Session {
    /// A session of these partitions. Of one that is named twice the later wish counts.
    #[must_use]
    pub fn of(wanted: Vec<Wanted>) -> Self {
        let mut session = Self::default();
        session.apply(wanted, []);
        session
    }

    /// Takes what an incremental request changes: partitions wanted in another way, at their old places; others at the end;
    /// then those that are wanted no more (F-709).
    pub fn apply(&mut self, wanted: Vec<Wanted>, forgotten: impl IntoIterator<Item = (TopicName, i32)>) {
        for wanted in wanted {
            let name = (wanted.topic.clone(), wanted.index);
            let held = self.by_name.get(&name).and_then(|place| self.places.get_mut(place));
            match held {
                Some(held) => held.wanted = wanted,
                None => {
                    self.bytes = self.bytes.saturating_add(bytes_of(&name.0));
                    self.put(name, Held { wanted, told: None });
                }
            }
        }
        for name in forgotten {
            if let Some(place) = self.by_name.remove(&name) {
                self.places.remove(&place);
                self.bytes = self.bytes.saturating_sub(bytes_of(&name.0));
            }
        }
    }

    fn put(&mut self, name: (TopicName, i32), held: Held) {
        let place = self.next_place;
        self.next_place = place.saturating_add(1);
        self.by_name.insert(name, place);
        self.places.insert(place, held);
    }

    /// The partitions to read, in their order.
    pub fn wanted(&self) -> impl ExactSizeIterator<Item = &Wanted> {
        self.places.values().map(|held| &held.wanted)
    }

    /// Which partitions an incremental answer has, when all are answered with these, in their order.
    pub fn news(&self, answered: &[Answered]) -> Vec<bool> {
        let is_news = |(held, answered): (&Held, &Answered)| match answered {
            Answered::Refused | Answered::Diverged(_) | Answered::Records(_) => true,
            Answered::Empty(told) => held.told != Some(*told),
        };
        self.places.values().zip(answered).map(is_news).collect()
    }

    /// The client is told. An error is told again until it is over. Who had records comes last next time (F-712).
    pub fn note(&mut self, answered: &[Answered]) {
        let mut served = Vec::new();
        for ((place, held), answered) in self.places.iter_mut().zip(answered) {
            held.told = match answered {
                Answered::Refused => None,
                Answered::Diverged(told) | Answered::Empty(told) | Answered::Records(told) => Some(*told),
            };
            if matches!(answered, Answered::Records(_)) {
                served.push(*place);
            }
        }
        for place in served {
            if let Some(held) = self.places.remove(&place) {
                self.put((held.wanted.topic.clone(), held.wanted.index), held);
            }
        }
    }

    /// How many partitions it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// What it takes in memory, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

fn bytes_of(topic: &TopicName) -> usize {
    topic.as_str().len().saturating_add(HELD_BYTES)
}

#[cfg(test)]
mod tests;

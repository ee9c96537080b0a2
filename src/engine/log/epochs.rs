//! Which leader epoch wrote what: the text file `leader-epoch-checkpoint`, and `partition.metadata` beside it.

use crate::engine::{Offset, TopicId};

/// Leader epochs of a log, each with the offset of its first batch; both rise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaderEpochs(Vec<(i32, Offset)>);

impl LeaderEpochs {
    /// Notes a batch of `epoch` at `start`. True when this is the epoch's first.
    pub fn note(&mut self, epoch: i32, start: Offset) -> bool {
        if self.0.last().is_some_and(|(last, _)| *last >= epoch) {
            return false;
        }
        // An epoch that wrote nothing leaves no trace once a later one starts at the same place.
        self.0.retain(|(_, earlier)| *earlier < start);
        self.0.push((epoch, start));
        true
    }

    /// Forgets what starts at or above `end`, after the log was cut there. True when anything did.
    pub fn cut(&mut self, end: Offset) -> bool {
        let before = self.0.len();
        self.0.retain(|(_, start)| *start < end);
        self.0.len() != before
    }

    /// The newest epoch, if any batch or creation noted one.
    #[must_use]
    pub fn latest(&self) -> Option<i32> {
        self.0.last().map(|(epoch, _)| *epoch)
    }

    /// The entries, oldest first.
    #[must_use]
    pub fn entries(&self) -> &[(i32, Offset)] {
        &self.0
    }

    /// Where `requested` ends, as OffsetForLeaderEpoch is answered (F-752): the epoch that the answer is about, and its
    /// end; (-1, -1) for an epoch that has not been. `current` is the leader's own epoch, `end` the log's end.
    #[must_use]
    pub fn end_of(&self, requested: i32, current: i32, end: Offset) -> (i32, Offset) {
        if requested == current {
            return (current, end);
        }
        if requested > current || requested < 0 {
            return (-1, -1);
        }
        let after = self.0.partition_point(|(epoch, _)| *epoch <= requested);
        let next_start = self.0.get(after).map_or(end, |(_, start)| *start);
        let epoch = after.checked_sub(1).and_then(|at| self.0.get(at)).map_or(requested, |(epoch, _)| *epoch);
        (epoch, next_start)
    }

    /// The file's text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("0\n{}\n", self.0.len());
        for (epoch, start) in &self.0 {
            text.push_str(&format!("{epoch} {start}\n"));
        }
        text
    }

    /// Reads the file's text; `None` when it is not whole.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()? != "0" {
            return None;
        }
        let count: usize = lines.next()?.parse().ok()?;
        let mut entries: Vec<(i32, Offset)> = Vec::new();
        for line in lines {
            let (epoch, start) = line.split_once(' ')?;
            let entry = (epoch.parse().ok()?, start.parse().ok()?);
            if entries.last().is_some_and(|last| last.0 >= entry.0 || last.1 >= entry.1) {
                return None;
            }
            entries.push(entry);
        }
        (entries.len() == count).then_some(Self(entries))
    }
}

/// Content of `partition.metadata`: no newline at its end.
#[must_use]
pub fn partition_metadata(topic: TopicId) -> String {
    format!("version: 0\ntopic_id: {}", topic_id_text(topic))
}

/// The topic that `partition.metadata` names; `None` when the file is not whole, or of a version not known here.
#[must_use]
pub fn read_partition_metadata(text: &str) -> Option<TopicId> {
    let mut lines = text.lines();
    if lines.next()? != "version: 0" {
        return None;
    }
    read_topic_id(lines.next()?.strip_prefix("topic_id: ")?)
}

fn read_topic_id(text: &str) -> Option<TopicId> {
    let six = |byte: u8| ALPHABET.iter().position(|known| *known == byte).and_then(|at| u128::try_from(at).ok());
    let mut bits = 0_u128;
    for (at, byte) in text.bytes().enumerate() {
        bits = if at == 21 { bits << 2 | six(byte)? >> 4 } else { bits << 6 | six(byte)? };
    }
    let topic = TopicId(bits.to_be_bytes());
    (topic_id_text(topic) == text).then_some(topic)
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A topic id as Kafka's tools print it: 22 characters of URL-safe base64 without padding.
#[must_use]
pub fn topic_id_text(topic: TopicId) -> String {
    // 128 bits are 21 groups of six and one of two, which base64 fills up with zeros.
    let bits = u128::from_be_bytes(topic.0);
    (0..22_u32)
        .filter_map(|at| {
            let six = if at == 21 { bits << 4 } else { bits >> 122_u32.saturating_sub(at.saturating_mul(6)) };
            let index = usize::try_from(six & 63).ok()?;
            ALPHABET.get(index).map(|byte| char::from(*byte))
        })
        .collect()
}

#[cfg(test)]
mod tests;

//! The positions of OffsetCommit and TxnOffsetCommit: which of them the coordinator is asked about, and what each
//! partition is told afterwards (O-601 to O-614, T-241).

use crate::engine::catalog::Catalog;
use crate::engine::txn::Position;
use crate::engine::{PartId, Refusal};

/// Longest metadata of a committed offset, in UTF-16 units (`offset.metadata.max.bytes`, O-614).
const MAX_METADATA_UNITS: usize = 4096;

/// One partition as the request has it.
pub(super) struct Named<'a> {
    /// The topic.
    pub(super) topic: &'a str,
    /// The partition's number.
    pub(super) index: i32,
    /// Next offset to read.
    pub(super) offset: i64,
    /// Leader epoch of the last record read, -1 for none.
    pub(super) leader_epoch: i32,
    /// The consumer's own text.
    pub(super) metadata: Option<&'a str>,
}

/// What becomes of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Goes to the coordinator.
    Asked,
    /// Is left out of what goes there, and told so only if the coordinator accepts the rest.
    MetadataTooLong,
    /// Does not exist.
    Unknown,
}

/// A commit, its partitions sorted out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Positions {
    fates: Vec<Fate>,
    offsets: Vec<(PartId, Position)>,
}

impl Positions {
    /// Looks every partition up.
    pub(super) fn of<'a>(catalog: &Catalog, named: impl Iterator<Item = Named<'a>>) -> Self {
        let mut positions = Self { fates: Vec::new(), offsets: Vec::new() };
        for named in named {
            let fate = positions.take(catalog, &named);
            positions.fates.push(fate);
        }
        positions
    }

    fn take(&mut self, catalog: &Catalog, named: &Named<'_>) -> Fate {
        let Some(part) = catalog.part_id(named.topic, named.index) else { return Fate::Unknown };
        let metadata = named.metadata.unwrap_or("");
        // No text has more UTF-16 units than bytes.
        if metadata.len() > MAX_METADATA_UNITS && metadata.encode_utf16().count() > MAX_METADATA_UNITS {
            return Fate::MetadataTooLong;
        }
        let (offset, leader_epoch) = (named.offset, named.leader_epoch);
        self.offsets.push((part, Position { offset, leader_epoch, metadata: metadata.to_owned() }));
        Fate::Asked
    }

    /// What to commit, if the coordinator is to be asked at all: a request that names only unknown partitions is
    /// answered without (O-605, T-241 row 6), one whose metadata is all too long is not, so that a fenced member hears
    /// of it.
    pub(super) fn take_asked(&mut self) -> Option<Vec<(PartId, Position)>> {
        let asks = self.fates.iter().any(|fate| *fate != Fate::Unknown);
        asks.then(|| std::mem::take(&mut self.offsets))
    }

    /// What each partition is told, in the order of the request, after this verdict of the coordinator.
    pub(super) fn verdicts(&self, verdict: Result<(), Refusal>) -> impl Iterator<Item = Option<Refusal>> {
        self.fates.iter().map(move |fate| match (fate, verdict) {
            (Fate::Unknown, _) => Some(Refusal::UnknownTopicOrPartition),
            (Fate::Asked | Fate::MetadataTooLong, Err(refusal)) => Some(refusal),
            (Fate::Asked, Ok(())) => None,
            (Fate::MetadataTooLong, Ok(())) => Some(Refusal::OffsetMetadataTooLarge),
        })
    }
}

#[cfg(test)]
mod tests;

//! How much of a segment's end is sound after a crash, and what the rest means.
//!
//! The checksum covers neither base offset nor leader epoch, so a scan also demands continuity: an old batch at the
//! wrong place passes the checksum.

use crate::engine::Offset;
use crate::engine::batch::{self, HEADER_BYTES, Header};

/// What the next batch must continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// The base offset it must have.
    pub next_offset: Offset,
    /// The leader epoch it must not be below.
    pub leader_epoch: i32,
}

impl Expected {
    /// What must follow this batch.
    #[must_use]
    pub fn after(header: &Header) -> Self {
        Self { next_offset: header.next_offset(), leader_epoch: header.leader_epoch }
    }
}

/// Why a batch is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// Fewer bytes than a header.
    ShortHeader,
    /// The length cannot be one of a batch.
    BadLength,
    /// The batch goes beyond the end of the file.
    ShortBatch,
    /// Not format version 2.
    BadMagic,
    /// The base offset is not the expected one.
    WrongOffset,
    /// The leader epoch is lower than an earlier one.
    FallingEpoch,
    /// The leader epoch is higher than any there can be, and nothing that follows bears it out.
    LoneEpoch,
    /// The header contradicts itself.
    BadCount,
    /// The checksum is not that of the bytes.
    BadChecksum,
}

/// What the bytes from some place on mean (storage rule 2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Whole batches to the end, and every witness is satisfied.
    Sound,
    /// The last append did not reach the disk. To be cut.
    TornTail,
    /// As a torn tail, with sound batches further on: pages reach the disk in any order. To be cut, and told.
    Hole,
    /// Something is missing that was known to be on disk. Never to be cut.
    Damage,
}

/// Judges a header alone: everything but the checksum. `left` is the number of bytes from its start to the file's end.
///
/// # Errors
/// The first flaw found.
pub fn check_header(header: &Header, left: u64, expected: Expected) -> Result<usize, Flaw> {
    let size = check_shape(header, left)?;
    if header.base_offset != expected.next_offset {
        return Err(Flaw::WrongOffset);
    }
    if header.leader_epoch < expected.leader_epoch {
        return Err(Flaw::FallingEpoch);
    }
    Ok(size)
}

/// Judges what a header says of itself, whatever comes before it; gives the batch's size.
///
/// # Errors
/// The first flaw found.
pub fn check_shape(header: &Header, left: u64) -> Result<usize, Flaw> {
    let size = header.size().ok_or(Flaw::BadLength)?;
    if header.magic != 2 {
        return Err(Flaw::BadMagic);
    }
    if u64::try_from(size).map_or(true, |size| size > left) {
        return Err(Flaw::ShortBatch);
    }
    if header.last_offset_delta < 0 || header.count < 0 || header.base_offset < 0 {
        return Err(Flaw::BadCount);
    }
    Ok(size)
}

/// Judges the checksum of a whole batch.
///
/// # Errors
/// [`Flaw::BadChecksum`].
pub fn check_sum(header: &Header, bytes: &[u8]) -> Result<(), Flaw> {
    if batch::checksum(bytes) == header.crc { Ok(()) } else { Err(Flaw::BadChecksum) }
}

/// Judges the batch at the front of `bytes`, which reach to the end of the file.
///
/// # Errors
/// The first flaw found.
pub fn check_batch(bytes: &[u8], expected: Expected) -> Result<(Header, usize), Flaw> {
    let header = Header::read(bytes).ok_or(Flaw::ShortHeader)?;
    let left = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let size = check_header(&header, left, expected)?;
    check_sum(&header, bytes.get(..size).ok_or(Flaw::ShortBatch)?)?;
    Ok((header, size))
}

/// The verdict on a segment whose first flaw lies at `next_offset`, above everything known to be synced. `witness` is an
/// offset that the log is durably known to have reached; `more` says that a sound batch lies further on.
#[must_use]
pub fn verdict(flaw: Option<Flaw>, next_offset: Offset, witness: Offset, more: bool) -> Verdict {
    match flaw {
        _ if next_offset < witness => Verdict::Damage,
        None => Verdict::Sound,
        Some(_) if more => Verdict::Hole,
        Some(_) => Verdict::TornTail,
    }
}

/// Where in `window` a batch may start whose base offset is at least `from`: the header is plausible, nothing else was
/// looked at. Looks at starts from `at` on.
#[must_use]
pub fn find_candidate(window: &[u8], at: usize, from: Offset) -> Option<(usize, Header)> {
    let last = window.len().checked_sub(HEADER_BYTES)?;
    (at..=last).find_map(|start| {
        if *window.get(start.saturating_add(16))? != 2 {
            return None;
        }
        let header = Header::read(window.get(start..)?)?;
        let near = header.base_offset >= from && header.base_offset.saturating_sub(from) <= i64::from(i32::MAX);
        (near && check_shape(&header, u64::MAX).is_ok()).then_some((start, header))
    })
}

/// What a scan of bytes that lie wholly in memory found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scanned {
    /// Bytes of sound batches from the start.
    pub sound_bytes: usize,
    /// The offset after them.
    pub next_offset: Offset,
    /// The first flaw, if the end was not reached.
    pub flaw: Option<Flaw>,
    /// What it means.
    pub verdict: Verdict,
}

/// Scans the end of a segment: `bytes` are all that lies above the synced position.
#[must_use]
pub fn scan(bytes: &[u8], start: Expected, witness: Offset) -> Scanned {
    let (mut at, mut expected, mut flaw) = (0_usize, start, None);
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        match check_batch(rest, expected) {
            Ok((header, size)) => {
                at = at.saturating_add(size);
                expected = Expected::after(&header);
            }
            Err(found) => {
                flaw = Some(found);
                break;
            }
        }
    }
    let more = flaw.is_some() && has_sound_batch(bytes, at.saturating_add(1), expected.next_offset);
    let verdict = verdict(flaw, expected.next_offset, witness, more);
    Scanned { sound_bytes: at, next_offset: expected.next_offset, flaw, verdict }
}

/// Candidates whose checksum is looked at before the search gives up: a payload may be full of what looks like headers.
pub const MAX_CANDIDATES: usize = 256;

fn has_sound_batch(bytes: &[u8], start: usize, from: Offset) -> bool {
    let mut at = start;
    for _ in 0..MAX_CANDIDATES {
        let Some((found, header)) = find_candidate(bytes, at, from) else {
            return false;
        };
        let whole = header.size().and_then(|size| bytes.get(found..found.checked_add(size)?));
        if whole.is_some_and(|whole| check_sum(&header, whole).is_ok()) {
            return true;
        }
        at = found.saturating_add(1);
    }
    false
}

#[cfg(test)]
mod tests;

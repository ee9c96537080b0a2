//! Kafka's `.snapshot` file: producers as bytes and back (T-711).
//!
//! Of each producer all retained batches are written, oldest first, one entry each, and the open transaction only in the
//! last: Kafka's own reader takes the last entry of an id, which is just what it would have written; ours takes all, so
//! that a repeat is recognised across a restart too (T-712 R).

use std::fmt;

use super::Partition;
use super::open::Open;
use super::producers::{Batch, Entry, Producers};
use crate::engine::{Epoch, Now, Offset, Producer};

const VERSION: i16 = 1;
const ENTRY_BYTES: usize = 46;

/// Version and checksum; the checksum covers what comes after it.
const CHECKED_FROM: usize = 6;

/// Size of a snapshot of no producers.
pub const EMPTY_SNAPSHOT_BYTES: usize = 10;

/// Why bytes are no snapshot. The caller tries an older one, or the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invalid {
    /// Fewer bytes than the entries need.
    Short,
    /// A version that is not known.
    Version(i16),
    /// The checksum is wrong.
    Checksum,
    /// Entries that contradict each other or themselves.
    Contents,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => f.write_str("the snapshot is cut short"),
            Self::Version(version) => write!(f, "the snapshot has the unknown version {version}"),
            Self::Checksum => f.write_str("the checksum of the snapshot is wrong"),
            Self::Contents => f.write_str("the entries of the snapshot contradict each other"),
        }
    }
}

impl std::error::Error for Invalid {}

/// One entry of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    producer: Producer,
    last_sequence: i32,
    last_offset: Offset,
    offset_delta: i32,
    timestamp: i64,
    coordinator_epoch: i32,
    first_offset: Offset,
}

impl Partition {
    /// All producers and open transactions as a snapshot file. Which offset it stands for is the log end.
    #[must_use]
    pub fn snapshot(&self) -> Vec<u8> {
        let rows: Vec<Row> = self.producers.iter().flat_map(|(id, entry)| rows_of(*id, entry)).collect();
        encode(&rows)
    }

    /// Takes producers and open transactions from a snapshot file, in place of what is known. Grants and the log's
    /// ends are not in it. `now` places the stored times of arrival on the clock that never goes back.
    ///
    /// # Errors
    /// [`Invalid`]; nothing has changed then.
    pub fn restore(&mut self, bytes: &[u8], now: Now) -> Result<(), Invalid> {
        let mut producers = Producers::new();
        for row in decode(bytes)? {
            take_row(&mut producers, &row, now)?;
        }
        let mut open = Open::default();
        for (id, entry) in &producers {
            let Some(first) = entry.open else { continue };
            let started = entry.recent.iter().rfind(|batch| batch.base_offset() >= first);
            let wall_ms = started.map_or(entry.arrived.wall_ms, |batch| batch.arrived_wall_ms);
            if !open.begin(Producer { id: *id, epoch: entry.epoch }, first, wall_ms) {
                return Err(Invalid::Contents);
            }
        }
        self.producers = producers;
        self.open = open;
        Ok(())
    }
}

/// The entries of one producer. The last one carries the time of the newest batch or marker, so that of the newest batch
/// itself is lost if a marker came after it.
fn rows_of(id: i64, entry: &Entry) -> Vec<Row> {
    let row = Row {
        producer: Producer { id, epoch: entry.epoch },
        last_sequence: -1,
        last_offset: -1,
        offset_delta: 0,
        timestamp: entry.arrived.wall_ms,
        coordinator_epoch: entry.coordinator_epoch,
        first_offset: -1,
    };
    let of_batch = |batch: &Batch| Row {
        last_sequence: batch.last_sequence,
        last_offset: batch.last_offset,
        offset_delta: batch.offset_delta,
        timestamp: batch.arrived_wall_ms,
        ..row
    };
    let mut rows: Vec<Row> = entry.recent.iter().rev().map(of_batch).collect();
    if rows.is_empty() {
        rows.push(row);
    }
    if let Some(last) = rows.last_mut() {
        last.timestamp = entry.arrived.wall_ms;
        last.first_offset = entry.open.unwrap_or(-1);
    }
    rows
}

fn take_row(producers: &mut Producers, row: &Row, now: Now) -> Result<(), Invalid> {
    if row.producer.id < 0 || row.offset_delta < 0 || row.first_offset < -1 {
        return Err(Invalid::Contents);
    }
    let idle_ms = now.wall_ms.saturating_sub(row.timestamp).max(0);
    let arrived = Now { mono_ms: now.mono_ms.saturating_sub(idle_ms), wall_ms: row.timestamp };
    let entry = producers.entry(row.producer.id).or_insert_with(|| Entry::new(row.producer.epoch, arrived));
    entry.set_epoch(row.producer.epoch);
    entry.coordinator_epoch = row.coordinator_epoch;
    entry.arrived = arrived;
    entry.open = (row.first_offset >= 0).then_some(row.first_offset);
    if row.last_offset >= 0 && row.last_sequence >= 0 {
        entry.recent.push(Batch {
            last_sequence: row.last_sequence,
            last_offset: row.last_offset,
            offset_delta: row.offset_delta,
            arrived_wall_ms: row.timestamp,
        });
    }
    Ok(())
}

fn encode(rows: &[Row]) -> Vec<u8> {
    let count = i32::try_from(rows.len()).unwrap_or(i32::MAX);
    let mut checked = Vec::with_capacity(rows.len().saturating_mul(ENTRY_BYTES).saturating_add(4));
    checked.extend_from_slice(&count.to_be_bytes());
    for row in rows.iter().take(usize::try_from(count).unwrap_or_default()) {
        checked.extend_from_slice(&row.producer.id.to_be_bytes());
        checked.extend_from_slice(&row.producer.epoch.to_be_bytes());
        checked.extend_from_slice(&row.last_sequence.to_be_bytes());
        checked.extend_from_slice(&row.last_offset.to_be_bytes());
        checked.extend_from_slice(&row.offset_delta.to_be_bytes());
        checked.extend_from_slice(&row.timestamp.to_be_bytes());
        checked.extend_from_slice(&row.coordinator_epoch.to_be_bytes());
        checked.extend_from_slice(&row.first_offset.to_be_bytes());
    }
    let mut bytes = Vec::with_capacity(checked.len().saturating_add(CHECKED_FROM));
    bytes.extend_from_slice(&VERSION.to_be_bytes());
    bytes.extend_from_slice(&crc32c::crc32c(&checked).to_be_bytes());
    bytes.append(&mut checked);
    bytes
}

/// Bytes after the entries are left alone: the checksum covers them, their meaning is not ours.
fn decode(bytes: &[u8]) -> Result<Vec<Row>, Invalid> {
    let mut fields = Fields(bytes);
    let version = i16::from_be_bytes(fields.take()?);
    if version != VERSION {
        return Err(Invalid::Version(version));
    }
    let crc = u32::from_be_bytes(fields.take()?);
    if crc32c::crc32c(fields.0) != crc {
        return Err(Invalid::Checksum);
    }
    let count = usize::try_from(i32::from_be_bytes(fields.take()?)).map_err(|_| Invalid::Contents)?;
    if fields.0.len() < count.saturating_mul(ENTRY_BYTES) {
        return Err(Invalid::Short);
    }
    (0..count).map(|_| fields.row()).collect()
}

/// Numbers taken off the front, in order.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Invalid> {
        let (front, rest) = self.0.split_first_chunk().ok_or(Invalid::Short)?;
        self.0 = rest;
        Ok(*front)
    }

    fn row(&mut self) -> Result<Row, Invalid> {
        Ok(Row {
            producer: Producer { id: i64::from_be_bytes(self.take()?), epoch: Epoch::from_be_bytes(self.take()?) },
            last_sequence: i32::from_be_bytes(self.take()?),
            last_offset: i64::from_be_bytes(self.take()?),
            offset_delta: i32::from_be_bytes(self.take()?),
            timestamp: i64::from_be_bytes(self.take()?),
            coordinator_epoch: i32::from_be_bytes(self.take()?),
            first_offset: i64::from_be_bytes(self.take()?),
        })
    }
}

#[cfg(test)]
mod tests;

//! The answer to Fetch (versions 4 to 12), written by hand so that records go out as the very bytes that were read.

use bytes::{BufMut, Bytes, BytesMut};

use super::Api;
use crate::engine::Offset;

/// Records of at most this many bytes are copied in between: cheaper than a piece of their own.
const INLINE_BYTES: usize = 512;

/// Bytes of the tagged field that names a diverging epoch: its two numbers and an empty tag section.
const DIVERGING_BYTES: u8 = 13;

/// One partition of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Its number.
    pub index: i32,
    /// Kafka's error code.
    pub error_code: i16,
    /// End of what is on disk, -1 with an error (T-511).
    pub high_watermark: Offset,
    /// End of what is decided, -1 with an error.
    pub last_stable_offset: Offset,
    /// First offset, -1 with an error (v5+).
    pub log_start_offset: Offset,
    /// The epoch, and its end, at which the client's log parted from ours (v12, F-731).
    pub diverging: Option<(i32, Offset)>,
    /// Producer id and first offset of each aborted transaction among the records; `None` is null (T-513).
    pub aborted: Option<Vec<(i64, Offset)>>,
    /// Whole batches.
    pub records: Bytes,
}

impl Partition {
    /// A partition that is refused (F-733).
    #[must_use]
    pub fn refused(index: i32, error_code: i16, aborted: Option<Vec<(i64, Offset)>>) -> Self {
        Self {
            index,
            error_code,
            high_watermark: -1,
            last_stable_offset: -1,
            log_start_offset: -1,
            diverging: None,
            aborted,
            records: Bytes::new(),
        }
    }
}

/// Writes an answer, topic after topic.
#[derive(Debug)]
pub struct Writer {
    version: i16,
    flexible: bool,
    pieces: Vec<Bytes>,
    head: BytesMut,
}

impl Writer {
    /// Begins the answer to a request of this version; `session_id` is 0 for none (v7+).
    #[must_use]
    pub fn begin(version: i16, (error_code, session_id): (i16, i32), topics: usize) -> Self {
        let flexible = Api::Fetch.is_flexible(version);
        let mut writer = Self { version, flexible, pieces: Vec::new(), head: BytesMut::with_capacity(256) };
        writer.head.put_i32(0);
        if version >= 7 {
            writer.head.put_i16(error_code);
            writer.head.put_i32(session_id);
        }
        writer.count(Some(topics));
        writer
    }

    /// The whole answer to a request that is refused as such (v7+).
    #[must_use]
    pub fn refusal(version: i16, error_code: i16) -> Vec<Bytes> {
        Self::begin(version, (error_code, 0), 0).end()
    }

    /// Writes one topic.
    pub fn topic(&mut self, name: &str, partitions: impl ExactSizeIterator<Item = Partition>) {
        if self.flexible {
            self.count(Some(name.len()));
        } else {
            // Names come out of a request, where none is longer.
            self.head.put_i16(i16::try_from(name.len()).unwrap_or(i16::MAX));
        }
        self.head.put_slice(name.as_bytes());
        self.count(Some(partitions.len()));
        for partition in partitions {
            self.partition(partition);
        }
        self.tags();
    }

    fn partition(&mut self, partition: Partition) {
        self.head.put_i32(partition.index);
        self.head.put_i16(partition.error_code);
        self.head.put_i64(partition.high_watermark);
        self.head.put_i64(partition.last_stable_offset);
        if self.version >= 5 {
            self.head.put_i64(partition.log_start_offset);
        }
        self.aborted(partition.aborted.as_deref());
        if self.version >= 11 {
            self.head.put_i32(-1);
        }
        self.count(Some(partition.records.len()));
        self.records(partition.records);
        match partition.diverging {
            Some((epoch, end)) if self.flexible => {
                self.head.put_slice(&[1, 0, DIVERGING_BYTES]);
                self.head.put_i32(epoch);
                self.head.put_i64(end);
                self.head.put_u8(0);
            }
            Some(_) | None => self.tags(),
        }
    }

    fn aborted(&mut self, aborted: Option<&[(i64, Offset)]>) {
        self.count(aborted.map(<[_]>::len));
        for (producer_id, first_offset) in aborted.unwrap_or_default() {
            self.head.put_i64(*producer_id);
            self.head.put_i64(*first_offset);
            self.tags();
        }
    }

    fn records(&mut self, records: Bytes) {
        if records.len() <= INLINE_BYTES {
            self.head.put_slice(&records);
            return;
        }
        let head = self.head.split().freeze();
        self.pieces.extend([head, records]);
    }

    /// A count or length; `None` is null. What is counted came out of memory, so no count exceeds 32 bits.
    fn count(&mut self, count: Option<usize>) {
        let count = count.map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        if !self.flexible {
            self.head.put_i32(count.map_or(-1, |count| i32::try_from(count).unwrap_or(i32::MAX)));
            return;
        }
        let mut rest = count.map_or(0, |count| count.saturating_add(1));
        while rest >= 0x80 {
            self.head.put_u8(u8::try_from(rest & 0x7f).unwrap_or(0) | 0x80);
            rest >>= 7;
        }
        self.head.put_u8(u8::try_from(rest).unwrap_or(0));
    }

    fn tags(&mut self) {
        if self.flexible {
            self.head.put_u8(0);
        }
    }

    /// The answer's body, in pieces.
    #[must_use]
    pub fn end(mut self) -> Vec<Bytes> {
        self.tags();
        self.pieces.push(self.head.freeze());
        self.pieces
    }
}

#[cfg(test)]
mod tests;

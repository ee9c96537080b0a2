//! Is this batch acceptable.
//!
//! The order of the checks is Kafka's (T-321 to T-346), for a client sees the first that fails. What the partition
//! knows of the producer is asked afterwards (T-343).

use super::inflate::{Broken, Inflated, Plain, Source};
use super::records::{Field, Record, read_record};
use super::{HEADER_BYTES, Header, LENGTH_PREFIX_BYTES, checksum, field, put};
use crate::engine::Refusal;

/// Least bytes after the length field of any batch or message that ever was (T-323).
const LENGTH_LEAST: i32 = 14;

/// Bytes up to and with the magic byte.
const THROUGH_MAGIC_BYTES: usize = 17;

const ZSTD: i16 = 4;

/// A record without a timestamp (T-339).
const NO_TIMESTAMP: i64 = -1;

/// Most bad records that a rejection lists; a batch with more is rejected just so, and its answer stays small.
pub const BAD_RECORDS_MOST: usize = 1000;

/// Bad records that a message quotes (T-340a).
const QUOTED_MOST: usize = 3;

/// What the topic and the request ask of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// `max.message.bytes` (T-331).
    pub max_message_bytes: u32,
    /// `segment.bytes` (T-342).
    pub segment_bytes: u32,
    /// Whether every record needs a key (T-338).
    pub keys: Keys,
    /// Whose timestamps the topic keeps.
    pub times: Times,
    /// `message.timestamp.before.max.ms`: how far a record may lie in the past; `i64::MAX` for no limit (T-339).
    pub before_max_ms: i64,
    /// `message.timestamp.after.max.ms`: how far a record may lie in the future (T-339).
    pub after_max_ms: i64,
    /// The broker's clock, milliseconds since 1970.
    pub now_wall_ms: i64,
    /// Version of the Produce request; zstd needs 7 (T-324).
    pub produce_version: i16,
}

/// Whether a record may go without a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keys {
    /// Any record will do.
    #[default]
    Optional,
    /// The topic is compacted, which needs keys.
    Needed,
}

/// `message.timestamp.type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Times {
    /// The client's, held to the limits of T-339.
    #[default]
    CreateTime,
    /// The broker's; what the client sent is replaced (T-345).
    LogAppendTime,
}

/// Why a batch is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The error of the partition.
    pub refusal: Refusal,
    /// Text for the client (v8+).
    pub message: Option<String>,
    /// Index of each bad record in the batch and what is wrong with it, [`BAD_RECORDS_MOST`] at the most (v8+).
    pub bad_records: Vec<(i32, Option<String>)>,
    /// Whether the answer carries the real log start, or -1 (T-318).
    pub show_log_start: bool,
}

impl Rejection {
    /// Refused before the append was tried: no log start is shown.
    fn early(refusal: Refusal, message: &str) -> Self {
        Self { refusal, message: Some(message.to_owned()), bad_records: Vec::new(), show_log_start: false }
    }

    /// Refused at the append, as INVALID_RECORD.
    fn invalid(message: &str) -> Self {
        Self { show_log_start: true, ..Self::early(Refusal::InvalidRecord, message) }
    }
}

/// Judges the record set that a Produce request holds for one partition.
///
/// The header is the single batch's; its `size()` bytes at the front are what to store (T-325). Its largest timestamp
/// is the records' own on a CreateTime topic, even if the client wrote another: [`settle`] puts it into the bytes.
///
/// # Errors
/// The first check that fails, in Kafka's order.
pub fn check(records: Option<&[u8]>, rules: &Rules) -> Result<Header, Rejection> {
    let records = records.unwrap_or_default();
    let (header, batch) = single_batch(records, rules)?;
    check_frame(&header, batch, rules)?;
    check_fields(&header)?;
    let max_timestamp = check_records(&header, batch, rules)?;
    if batch.len() > usize::try_from(rules.segment_bytes).unwrap_or(usize::MAX) {
        return Err(Rejection::early(Refusal::RecordListTooLarge, "the batch is larger than a segment"));
    }
    Ok(match rules.times {
        Times::CreateTime => Header { max_timestamp, ..header },
        Times::LogAppendTime => header,
    })
}

/// Puts the largest timestamp that [`check`] found into the bytes, with a new checksum, where the client had written
/// another one. Time index and retention trust that field.
pub fn settle(bytes: &mut [u8], header: &Header) {
    if field(bytes, 35).map(i64::from_be_bytes) == Some(header.max_timestamp) {
        return;
    }
    put(bytes, 35, &header.max_timestamp.to_be_bytes());
    let crc = header.size().and_then(|size| bytes.get(..size)).map_or(0, checksum);
    put(bytes, 17, &crc.to_be_bytes());
}

/// What lies at the front of a record set.
enum Front<'a> {
    /// Nothing whole: too few bytes for what its length says, or for having one.
    Incomplete,
    /// Bytes that no batch can begin with.
    Corrupt,
    /// A batch or message of this magic, and its bytes.
    Whole(i8, &'a [u8]),
}

fn front(bytes: &[u8]) -> Front<'_> {
    let Some(length) = field(bytes, 8).map(i32::from_be_bytes) else {
        return Front::Incomplete;
    };
    if length < LENGTH_LEAST {
        return Front::Corrupt;
    }
    let Some(&magic) = bytes.get(THROUGH_MAGIC_BYTES.saturating_sub(1)) else {
        return Front::Incomplete;
    };
    if magic > 2 {
        return Front::Corrupt;
    }
    let size = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(LENGTH_PREFIX_BYTES);
    bytes.get(..size).map_or(Front::Incomplete, |batch| Front::Whole(magic.cast_signed(), batch))
}

/// T-321 to T-325: there is one batch, of version 2.
fn single_batch<'a>(records: &'a [u8], rules: &Rules) -> Result<(Header, &'a [u8]), Rejection> {
    let no = Rejection::early;
    let batch = match front(records) {
        Front::Incomplete => {
            return Err(no(Refusal::InvalidRecord, "the partition's records hold no whole batch"));
        }
        Front::Corrupt => return Err(no(Refusal::CorruptMessage, "the bytes are no record batch")),
        Front::Whole(2, batch) => batch,
        Front::Whole(_, _) => return Err(no(Refusal::InvalidRecord, "only record batches of version 2 are taken")),
    };
    let Some(header) = Header::read(batch) else {
        return Err(no(Refusal::CorruptMessage, "the batch is shorter than its header"));
    };
    if header.codec() == ZSTD && rules.produce_version < 7 {
        return Err(no(Refusal::UnsupportedCompressionType, "zstd needs Produce version 7"));
    }
    match front(records.get(batch.len()..).unwrap_or_default()) {
        Front::Incomplete => Ok((header, batch)),
        Front::Corrupt => Err(no(Refusal::CorruptMessage, "the bytes after the batch are no record batch")),
        Front::Whole(_, _) => Err(no(Refusal::InvalidRecord, "one batch per partition is taken")),
    }
}

/// T-330 to T-332: place, size, checksum.
fn check_frame(header: &Header, batch: &[u8], rules: &Rules) -> Result<(), Rejection> {
    if header.base_offset != 0 {
        return Err(Rejection::invalid("the base offset of a batch must be 0"));
    }
    if batch.len() > usize::try_from(rules.max_message_bytes).unwrap_or(usize::MAX) {
        return Err(Rejection::early(Refusal::MessageTooLarge, "the batch is larger than max.message.bytes"));
    }
    if checksum(batch) != header.crc {
        return Err(Rejection::early(Refusal::CorruptMessage, "the checksum of the batch is wrong"));
    }
    Ok(())
}

/// T-333 to T-335, and the holes of T-346 that a header can show. One stays open: Sarama's plain producer writes base
/// sequence 0 without a producer id, and nobody reads it then.
fn check_fields(header: &Header) -> Result<(), Rejection> {
    let wrong = [
        (header.last_offset_delta < 0, "the last offset delta is negative"),
        (header.count <= 0, "the batch holds no records"),
        (header.count != header.last_offset_delta.saturating_add(1), "the record count does not fit the offsets"),
        (header.is_control(), "clients may not write control batches"),
        (header.producer_id >= 0 && header.base_sequence < 0, "a producer id needs a base sequence"),
        (header.producer_id >= 0 && header.producer_epoch < 0, "a producer id needs an epoch"),
        (header.producer_id < -1, "the producer id is negative"),
        (header.producer_id == -1 && header.is_transactional(), "a transactional batch needs a producer id"),
        (header.has_delete_horizon(), "clients may not set a delete horizon"),
    ];
    if let Some((_, message)) = wrong.iter().find(|(found, _)| *found) {
        return Err(Rejection::invalid(message));
    }
    if header.is_log_append_time() {
        let message = "clients may not mark a batch with LogAppendTime";
        return Err(Rejection { refusal: Refusal::InvalidTimestamp, ..Rejection::invalid(message) });
    }
    Ok(())
}

/// T-336 to T-340a: every record is parsed. Gives the largest timestamp.
fn check_records(header: &Header, batch: &[u8], rules: &Rules) -> Result<i64, Rejection> {
    let payload = batch.get(HEADER_BYTES..).unwrap_or_default();
    let findings = match header.codec() {
        0 => walk(Plain::new(payload), header, rules),
        codec => Inflated::new(codec, payload).and_then(|source| walk(source, header, rules)),
    };
    let findings = findings.map_err(|broken| match broken {
        Broken::UnknownCodec => Rejection::early(Refusal::InvalidRecord, "the compression codec is unknown"),
        Broken::Compression => Rejection::invalid("the compressed records cannot be unpacked"),
        Broken::TooLarge => Rejection::invalid("the compressed records unpack to more than is allowed"),
        Broken::Record => Rejection::invalid("a record cannot be parsed"),
    })?;
    findings.verdict()
}

/// What a walk over the records found.
struct Findings {
    max_timestamp: i64,
    worst: Option<Refusal>,
    bad: Vec<(i32, Option<String>)>,
}

impl Findings {
    fn note(&mut self, index: i32, refusal: Refusal, message: String) {
        // One wrong timestamp names the whole batch, whatever else is wrong with it (T-340a).
        self.worst = match self.worst {
            Some(Refusal::InvalidTimestamp) => Some(Refusal::InvalidTimestamp),
            None | Some(_) => Some(refusal),
        };
        if self.bad.len() < BAD_RECORDS_MOST {
            self.bad.push((index, Some(message)));
        }
    }

    fn verdict(self) -> Result<i64, Rejection> {
        let Some(refusal) = self.worst else {
            return Ok(self.max_timestamp);
        };
        let quoted: Vec<String> = self
            .bad
            .iter()
            .take(QUOTED_MOST)
            .map(|(index, message)| format!("record {index}: {}", message.as_deref().unwrap_or_default()))
            .collect();
        let message = Some(quoted.join("; "));
        Err(Rejection { refusal, message, bad_records: self.bad, show_log_start: true })
    }
}

fn walk<S: Source>(mut source: S, header: &Header, rules: &Rules) -> Result<Findings, Broken> {
    let mut findings = Findings { max_timestamp: NO_TIMESTAMP, worst: None, bad: Vec::new() };
    for index in 0..header.count {
        let record = read_record(&mut source, header)?;
        // Kafka puts wrong deltas of compressed batches right by packing them anew; we keep a client's bytes (T-346).
        if record.offset_delta != index {
            return Err(Broken::Record);
        }
        findings.max_timestamp = findings.max_timestamp.max(record.timestamp);
        judge(&record, index, rules, &mut findings);
    }
    if !source.is_spent()? {
        return Err(Broken::Record);
    }
    Ok(findings)
}

/// T-338 and T-339.
#[inline]
fn judge(record: &Record, index: i32, rules: &Rules, findings: &mut Findings) {
    if rules.keys == Keys::Needed && record.key == Field::Null {
        findings.note(index, Refusal::InvalidRecord, "a compacted topic needs a key".to_owned());
        return;
    }
    if rules.times == Times::LogAppendTime || record.timestamp == NO_TIMESTAMP {
        return;
    }
    let earliest = rules.now_wall_ms.saturating_sub(rules.before_max_ms);
    let latest = rules.now_wall_ms.saturating_add(rules.after_max_ms);
    if record.timestamp < earliest || record.timestamp > latest {
        let message = format!("timestamp {} is not within {earliest} and {latest}", record.timestamp);
        findings.note(index, Refusal::InvalidTimestamp, message);
    }
}

#[cfg(test)]
mod tests;

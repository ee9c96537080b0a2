//! Looking for a timestamp inside a batch.

use crate::engine::Offset;
use crate::engine::batch::records::records;
use crate::engine::batch::{Broken, Header};

/// The first record of one whole batch, packed or not, with a timestamp of at least `wanted` and an offset of at least
/// `from`: its timestamp and offset (T-526, F-763).
///
/// # Errors
/// The batch cannot be read up to there.
pub fn first_at_or_after(batch: &[u8], wanted: i64, from: Offset) -> Result<Option<(i64, Offset)>, Broken> {
    let Some(header) = Header::read(batch) else {
        return Ok(None);
    };
    for record in records(batch) {
        let record = record?;
        let offset = header.base_offset.saturating_add(i64::from(record.offset_delta));
        if record.timestamp >= wanted && offset >= from {
            return Ok(Some((record.timestamp, offset)));
        }
    }
    Ok(None)
}

//! Topics and settings as bytes of a stored row. The first byte names the layout; numbers are big-endian.

use std::collections::BTreeMap;
use std::fmt;

use crate::engine::catalog::{Topic, TopicSettings};
use crate::engine::{PartId, TopicId, TopicName};

const VERSION: u8 = 1;

/// A stored row of the catalog that does not say what it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DamagedRow {
    /// What could not be read.
    pub what: &'static str,
}

impl fmt::Display for DamagedRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a stored row of the catalog cannot be read: {}", self.what)
    }
}

impl std::error::Error for DamagedRow {}

impl Topic {
    /// The topic as a row: id, name, parts, settings.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut row = vec![VERSION];
        row.extend_from_slice(&self.id.0);
        put_text(&mut row, self.name.as_str());
        put_count(&mut row, self.parts.len());
        for part in &self.parts {
            row.extend_from_slice(&part.0.to_be_bytes());
        }
        row.extend_from_slice(&self.settings.encode());
        row
    }

    /// The topic of a row.
    ///
    /// # Errors
    /// The row is of another layout, too short, too long, or not text where text should be.
    pub fn decode(row: &[u8]) -> Result<Self, DamagedRow> {
        let mut rest = row;
        take_version(&mut rest, "layout of a topic")?;
        let id = TopicId(take(&mut rest, "topic id")?);
        let name = TopicName::from(take_text(&mut rest, "topic name")?);
        let count = take_count(&mut rest, "partition count")?;
        let mut parts = Vec::new();
        for _ in 0..count {
            parts.push(PartId(i64::from_be_bytes(take(&mut rest, "partition id")?)));
        }
        Ok(Self { id, name, parts, settings: TopicSettings::decode(rest)? })
    }
}

impl TopicSettings {
    /// The settings as a row.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut row = vec![VERSION];
        put_count(&mut row, self.iter().count());
        for (key, value) in self.iter() {
            put_text(&mut row, key);
            put_text(&mut row, value);
        }
        row
    }

    /// The settings of a row. A key or a value that is not valid any more is kept as it stands; it has no effect.
    ///
    /// # Errors
    /// The row is of another layout, too short, too long, or not text where text should be.
    pub fn decode(row: &[u8]) -> Result<Self, DamagedRow> {
        let mut rest = row;
        take_version(&mut rest, "layout of settings")?;
        let count = take_count(&mut rest, "count of settings")?;
        let mut given = BTreeMap::new();
        for _ in 0..count {
            let key = take_text(&mut rest, "key of a setting")?;
            given.insert(key.to_owned(), take_text(&mut rest, "value of a setting")?.to_owned());
        }
        if rest.is_empty() { Ok(Self::stored(given)) } else { Err(DamagedRow { what: "bytes behind the end" }) }
    }
}

fn put_count(row: &mut Vec<u8>, count: usize) {
    row.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
}

fn put_text(row: &mut Vec<u8>, text: &str) {
    put_count(row, text.len());
    row.extend_from_slice(text.as_bytes());
}

fn take<const N: usize>(rest: &mut &[u8], what: &'static str) -> Result<[u8; N], DamagedRow> {
    let (head, tail) = rest.split_first_chunk::<N>().ok_or(DamagedRow { what })?;
    *rest = tail;
    Ok(*head)
}

fn take_version(rest: &mut &[u8], what: &'static str) -> Result<(), DamagedRow> {
    if take::<1>(rest, what)? == [VERSION] { Ok(()) } else { Err(DamagedRow { what }) }
}

fn take_count(rest: &mut &[u8], what: &'static str) -> Result<u32, DamagedRow> {
    Ok(u32::from_be_bytes(take(rest, what)?))
}

fn take_text<'a>(rest: &mut &'a [u8], what: &'static str) -> Result<&'a str, DamagedRow> {
    let length = usize::try_from(take_count(rest, what)?).map_err(|_| DamagedRow { what })?;
    let (head, tail) = rest.split_at_checked(length).ok_or(DamagedRow { what })?;
    *rest = tail;
    std::str::from_utf8(head).map_err(|_| DamagedRow { what })
}

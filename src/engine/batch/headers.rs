//! The values of one header of a batch's records, looked for within a budget.

use super::inflate::{Broken, Inflated, Plain, Source};
use super::records::{varint, varlong};
use super::{HEADER_BYTES, Header};

/// How far a search goes. What lies beyond is not looked at, and nothing is said of it.
#[derive(Debug, Clone, Copy)]
pub struct Search {
    /// Bytes of records that are looked through where they are not packed.
    pub plain_bytes: usize,
    /// Bytes that are unpacked at most.
    pub unpacked_bytes: usize,
    /// Different values, after which it ends.
    pub values: usize,
    /// Longer values are passed over.
    pub value_bytes: usize,
}

/// The different values that records of `batch`, one whole batch that has been checked, have in headers named `key`.
#[must_use]
pub fn header_values(batch: &[u8], key: &[u8], search: &Search) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let Some(header) = Header::read(batch) else { return found };
    let payload = batch.get(HEADER_BYTES..header.size().unwrap_or(HEADER_BYTES)).unwrap_or_default();
    // What was found before the budget or the bytes came to an end is found all the same.
    match header.codec() {
        0 => look(&mut Plain::new(payload), (header.count, key), (search, search.plain_bytes), &mut found),
        codec => Inflated::within(codec, payload, search.unpacked_bytes)
            .and_then(|mut source| look(&mut source, (header.count, key), (search, search.unpacked_bytes), &mut found)),
    }
    .unwrap_or_default();
    found
}

fn look<S: Source>(
    source: &mut S,
    (count, key): (i32, &[u8]),
    (search, most): (&Search, usize),
    found: &mut Vec<Vec<u8>>,
) -> Result<(), Broken> {
    for _ in 0..count {
        varint(source)?;
        source.byte()?;
        varlong(source)?;
        varint(source)?;
        pass(source, most)?;
        pass(source, most)?;
        for _ in 0..varint(source)? {
            if !is_named(source, key, most)? {
                pass(source, most)?;
            } else if let Some(value) = value(source, search.value_bytes, most)?
                && !found.contains(&value)
            {
                found.push(value);
            }
            if found.len() >= search.values {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The length of the next field; an error if it reaches beyond the budget.
fn length<S: Source>(source: &mut S, most: usize) -> Result<usize, Broken> {
    let length = usize::try_from(varint(source)?).unwrap_or(0);
    if source.taken().saturating_add(length) > most { Err(Broken::TooLarge) } else { Ok(length) }
}

fn pass<S: Source>(source: &mut S, most: usize) -> Result<(), Broken> {
    let length = length(source, most)?;
    source.skip(length)
}

/// Takes a header's name.
fn is_named<S: Source>(source: &mut S, key: &[u8], most: usize) -> Result<bool, Broken> {
    let length = length(source, most)?;
    if length != key.len() {
        source.skip(length)?;
        return Ok(false);
    }
    let mut same = true;
    for byte in key {
        same &= source.byte()? == *byte;
    }
    Ok(same)
}

fn value<S: Source>(source: &mut S, longest: usize, most: usize) -> Result<Option<Vec<u8>>, Broken> {
    let length = length(source, most)?;
    if length > longest {
        source.skip(length)?;
        return Ok(None);
    }
    (0..length).map(|_| source.byte()).collect::<Result<_, _>>().map(Some)
}

#[cfg(test)]
mod tests;

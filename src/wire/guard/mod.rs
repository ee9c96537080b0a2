//! Proves, before a request body is decoded, that decoding it cannot ask for more memory than a limit says.
//!
//! The codec reserves room for as many elements as an array's count claims, and keeps every unknown tagged field in a
//! tree: thirty bytes could ask for a hundred gigabytes. The guard walks the same bytes along a table of shapes, reads
//! every count before it is believed, and adds up what the decoded arrays will take. It allocates nothing, looks at
//! each byte at most once and goes no deeper than the shapes do. What it lets through, the codec either decodes from
//! exactly the bytes the guard walked or refuses (a string that is not UTF-8).
//!
//! It also refuses what the codec would let pass: null where a version has none (V-108), strings above 32767 bytes
//! (V-105), numbers of more than 32 bits. Bytes behind the body are ignored, as Kafka ignores them (V-105).

mod shapes;

use super::apis::Api;
use super::cursor::{Cursor, Malformed, Width};
use shapes::{Field, Kind, Shape};

/// Unknown tagged fields that a request may carry in all; no client sends one on purpose.
pub const MAX_UNKNOWN_TAGS: u32 = 64;

/// Memory that the decoded arrays of one request may take, in bytes: a quarter of a million partitions.
pub const MAX_DECODED_BYTES: usize = 32 << 20;

/// What one element of an array takes when decoded, in bytes; a struct never more than this (a test holds it).
const STRUCT_BYTES: usize = 128;
const TEXT_BYTES: usize = 32;

/// What one unknown tagged field takes at most: each could open a tree of its own.
const TAG_BYTES: usize = 512;

/// No string is longer, however its length is written (V-105).
const MAX_TEXT_BYTES: usize = 32767;

/// What the guard found in a body it lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// The bytes of the body; what is behind them is not part of the request.
    pub consumed: usize,
    /// The most that decoding will allocate, in bytes. Strings and records are slices of the frame and cost nothing.
    pub decoded_bytes: usize,
}

/// Walks a request body, the bytes behind the header, in a version that is served.
///
/// # Errors
/// When the body is not a request of this API and version, or would take too much memory. The connection is closed
/// (V-104).
pub fn check(api: Api, version: i16, body: &[u8]) -> Result<Passed, Malformed> {
    let mut walk = Walk {
        cursor: Cursor::new(body),
        version,
        flexible: api.is_flexible(version),
        tags_left: MAX_UNKNOWN_TAGS,
        decoded_bytes: 0,
    };
    walk.shape(shapes::of(api))?;
    let consumed = body.len().saturating_sub(walk.cursor.remaining());
    Ok(Passed { consumed, decoded_bytes: walk.decoded_bytes })
}

struct Walk<'a> {
    cursor: Cursor<'a>,
    version: i16,
    flexible: bool,
    tags_left: u32,
    decoded_bytes: usize,
}

impl Walk<'_> {
    fn shape(&mut self, shape: &'static Shape) -> Result<(), Malformed> {
        for field in shape.fields_in(self.version) {
            self.field(field)?;
        }
        if self.flexible {
            self.tags(shape.tags)?;
        }
        Ok(())
    }

    fn field(&mut self, field: &'static Field) -> Result<(), Malformed> {
        let width = match field.kind {
            Kind::Fixed(width) => return self.cursor.take(width).map(drop),
            Kind::Text => self.text_width(),
            Kind::Blob | Kind::FixedList(_) | Kind::TextList | Kind::List(_) => self.long_width(),
        };
        match self.cursor.length(width)? {
            None if self.version >= field.null_since => Ok(()),
            None => Err(Malformed::ForbiddenNull),
            Some(length) => self.content(field.kind, length),
        }
    }

    /// What is behind a length or count.
    fn content(&mut self, kind: Kind, length: usize) -> Result<(), Malformed> {
        match kind {
            Kind::Text => self.text(length),
            Kind::Fixed(_) | Kind::Blob => self.cursor.take(length).map(drop),
            Kind::FixedList(width) => {
                self.reserve(length, width, width)?;
                self.cursor.take(length.saturating_mul(width)).map(drop)
            }
            Kind::TextList => {
                self.reserve(length, self.text_width().least_bytes(), TEXT_BYTES)?;
                for _ in 0..length {
                    let text = self.cursor.length(self.text_width())?;
                    self.text(text.ok_or(Malformed::ForbiddenNull)?)?;
                }
                Ok(())
            }
            Kind::List(shape) => {
                self.reserve(length, shape.least_bytes(self.version, self.flexible), STRUCT_BYTES)?;
                for _ in 0..length {
                    self.shape(shape)?;
                }
                Ok(())
            }
        }
    }

    fn text(&mut self, length: usize) -> Result<(), Malformed> {
        if length > MAX_TEXT_BYTES {
            return Err(Malformed::StringTooLong);
        }
        self.cursor.take(length).map(drop)
    }

    /// Believes a count only if the bytes behind it could hold that many elements and memory may.
    fn reserve(&mut self, count: usize, least_bytes: usize, decoded_bytes: usize) -> Result<(), Malformed> {
        if count > self.cursor.remaining() / least_bytes.max(1) {
            return Err(Malformed::CountBeyondFrame);
        }
        self.charge(count.saturating_mul(decoded_bytes))
    }

    fn charge(&mut self, bytes: usize) -> Result<(), Malformed> {
        self.decoded_bytes = self.decoded_bytes.saturating_add(bytes);
        if self.decoded_bytes > MAX_DECODED_BYTES { Err(Malformed::TooManyElements) } else { Ok(()) }
    }

    /// A tag section. The codec reads a known tag's value without regard to its size, so the two must agree.
    fn tags(&mut self, known: &'static [(u32, Field)]) -> Result<(), Malformed> {
        for _ in 0..self.cursor.tag_count(&mut self.tags_left)? {
            let tag = self.cursor.varint()?;
            let size = usize::try_from(self.cursor.varint()?).unwrap_or(usize::MAX);
            let Some((_, field)) = known.iter().find(|(number, _)| *number == tag) else {
                self.charge(TAG_BYTES)?;
                self.cursor.take(size)?;
                continue;
            };
            let before = self.cursor.remaining();
            self.field(field)?;
            if before.saturating_sub(self.cursor.remaining()) != size {
                return Err(Malformed::TagSize);
            }
        }
        Ok(())
    }

    const fn long_width(&self) -> Width {
        if self.flexible { Width::Compact } else { Width::Long }
    }

    const fn text_width(&self) -> Width {
        if self.flexible { Width::Compact } else { Width::Short }
    }
}

#[cfg(test)]
mod tests;

//! Reads bytes that nobody has checked yet.

/// Why bytes are not the request they claim to be (V-105, V-106).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The bytes end inside a value.
    #[error("it ends inside a value")]
    Truncated,
    /// A length or count below -1.
    #[error("a length is negative")]
    NegativeLength,
    /// Null where this version has no null.
    #[error("a value is null that may not be")]
    ForbiddenNull,
    /// An array with more elements than the bytes behind its count could hold.
    #[error("an array claims more elements than the frame has bytes for")]
    CountBeyondFrame,
    /// A string above 32767 bytes.
    #[error("a string is longer than 32767 bytes")]
    StringTooLong,
    /// A string that is not UTF-8.
    #[error("a string is not UTF-8")]
    NotUtf8,
    /// A variable-length number of more than 32 bits.
    #[error("a variable-length number has more than 32 bits")]
    VarintTooLong,
    /// More unknown tagged fields than a request may carry.
    #[error("it carries too many tagged fields")]
    TooManyTags,
    /// A known tagged field whose size is not that of its value.
    #[error("a tagged field has the wrong size")]
    TagSize,
    /// Decoded, its arrays would take more memory than a request may.
    #[error("its arrays would take too much memory")]
    TooManyElements,
}

/// What is left to read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) const fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn exactly<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn i16(&mut self) -> Result<i16, Malformed> {
        self.exactly().map(i16::from_be_bytes)
    }

    pub(super) fn i32(&mut self) -> Result<i32, Malformed> {
        self.exactly().map(i32::from_be_bytes)
    }

    /// An unsigned number of at most five bytes with seven bits each, the lowest first. A fifth byte may hold only
    /// the four bits that are left: what a lenient reader would make of more is not for us to guess.
    pub(super) fn varint(&mut self) -> Result<u32, Malformed> {
        let mut value = 0_u32;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.exactly()?;
            if shift == 28 && byte > 0x0f {
                return Err(Malformed::VarintTooLong);
            }
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        Ok(value)
    }

    /// The length in front of a string, byte string or array; `None` is null.
    pub(super) fn length(&mut self, width: Width) -> Result<Option<usize>, Malformed> {
        let length = match width {
            Width::Compact => i64::from(self.varint()?) - 1,
            Width::Short => i64::from(self.i16()?),
            Width::Long => i64::from(self.i32()?),
        };
        if length == -1 {
            return Ok(None);
        }
        usize::try_from(length).map(Some).map_err(|_| Malformed::NegativeLength)
    }

    /// The tag section of a header or struct whose every tag is unknown; `left` is how many the request may still
    /// carry.
    pub(super) fn skip_tags(&mut self, left: &mut u32) -> Result<(), Malformed> {
        for _ in 0..self.tag_count(left)? {
            self.varint()?;
            let size = self.varint()?;
            self.take(usize::try_from(size).unwrap_or(usize::MAX))?;
        }
        Ok(())
    }

    /// The number of tagged fields that follow, taken off `left`.
    pub(super) fn tag_count(&mut self, left: &mut u32) -> Result<u32, Malformed> {
        let count = self.varint()?;
        *left = left.checked_sub(count).ok_or(Malformed::TooManyTags)?;
        Ok(count)
    }
}

/// How a length is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    /// A variable-length number, one more than the length.
    Compact,
    /// Two bytes.
    Short,
    /// Four bytes.
    Long,
}

impl Width {
    /// The fewest bytes a length takes.
    pub(super) const fn least_bytes(self) -> usize {
        match self {
            Self::Compact => 1,
            Self::Short => 2,
            Self::Long => 4,
        }
    }
}

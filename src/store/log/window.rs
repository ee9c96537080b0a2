//! Looking at a segment's bytes through a buffer of bounded size.

use std::path::PathBuf;
use std::sync::Arc;

use crate::engine::batch::{HEADER_BYTES, Header};
use crate::engine::log::scan::{Flaw, check_shape};
use crate::store::StoreError;
use crate::store::disk::File;
use crate::store::log::ReadHow;

/// A buffer over the bytes `..end` of a file. Grows beyond its capacity only for one batch, and shrinks again.
pub(super) struct Window {
    file: Arc<dyn File>,
    path: PathBuf,
    how: ReadHow,
    capacity: usize,
    end: u64,
    start: u64,
    bytes: Vec<u8>,
}

/// What lies at a position.
pub(super) enum View<'a> {
    /// The bytes asked for.
    Bytes(&'a [u8]),
    /// The file ends before.
    Short,
    /// They are not in memory.
    WouldBlock,
}

/// The batch at a position.
pub(super) enum Walked {
    /// Its header and its size; nothing but the header's shape was checked.
    Batch(Header, usize),
    /// Exactly the end.
    End,
    /// Not in memory.
    WouldBlock,
    /// No batch.
    Flawed(Flaw),
}

impl Window {
    pub(super) fn new(file: Arc<dyn File>, path: PathBuf, end: u64, capacity: usize) -> Self {
        Self { file, path, how: ReadHow::Block, capacity, end, start: 0, bytes: Vec::new() }
    }

    pub(super) fn how(mut self, how: ReadHow) -> Self {
        self.how = how;
        self
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// The `len` bytes at `pos`.
    pub(super) fn view(&mut self, pos: u64, len: usize) -> Result<View<'_>, StoreError> {
        if self.end.saturating_sub(pos) < as_u64(len) {
            return Ok(View::Short);
        }
        if !self.covers(pos, len) && !self.fill(pos, len)? {
            return Ok(View::WouldBlock);
        }
        let at = usize::try_from(pos.saturating_sub(self.start)).unwrap_or(usize::MAX);
        Ok(self.bytes.get(at..at.saturating_add(len)).map_or(View::Short, View::Bytes))
    }

    /// The batch whose header starts at `pos`.
    pub(super) fn walk(&mut self, pos: u64) -> Result<Walked, StoreError> {
        if pos >= self.end {
            return Ok(Walked::End);
        }
        let left = self.end - pos;
        Ok(match self.view(pos, HEADER_BYTES)? {
            View::WouldBlock => Walked::WouldBlock,
            View::Short => Walked::Flawed(Flaw::ShortHeader),
            View::Bytes(bytes) => match Header::read(bytes) {
                None => Walked::Flawed(Flaw::ShortHeader),
                Some(header) => match check_shape(&header, left) {
                    Ok(size) => Walked::Batch(header, size),
                    Err(flaw) => Walked::Flawed(flaw),
                },
            },
        })
    }

    fn covers(&self, pos: u64, len: usize) -> bool {
        pos >= self.start && pos.saturating_add(as_u64(len)) <= self.start.saturating_add(as_u64(self.bytes.len()))
    }

    /// Fills the buffer from `pos` on, at least `len` bytes; false when that would have to wait.
    fn fill(&mut self, pos: u64, len: usize) -> Result<bool, StoreError> {
        let left = usize::try_from(self.end.saturating_sub(pos)).unwrap_or(usize::MAX);
        let want = self.capacity.max(len).min(left);
        if self.bytes.capacity() > self.capacity.max(len) {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        self.bytes.resize(want, 0);
        self.start = pos;
        let read = match self.how {
            ReadHow::Block => self.file.read_at(&mut self.bytes, pos).map(Some),
            ReadHow::NoWait => self.file.read_at_nowait(&mut self.bytes, pos),
        };
        let read = read.map_err(|error| {
            self.bytes.clear();
            StoreError::from_read(&format!("{} at byte {pos}", self.path.display()), &error)
        })?;
        self.bytes.truncate(read.unwrap_or(0));
        Ok(self.bytes.len() >= len || self.how == ReadHow::Block)
    }
}

pub(super) fn as_u64(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

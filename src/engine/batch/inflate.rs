//! The records of a batch as a stream of bytes, compressed or not, taken one after the other.
//!
//! Nothing is ever unpacked as a whole: a window is kept, and the sum of what was unpacked is counted against a limit,
//! so that a small batch that unpacks to gigabytes costs neither memory nor much time (P8).

use std::io::Read;

use flate2::bufread::MultiGzDecoder;
use lz4_flex::frame::FrameDecoder;

/// Why records cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// The codec number is none of the five (T-346).
    UnknownCodec,
    /// The compressed bytes are not of the codec they claim (T-346).
    Compression,
    /// The records unpack to more than [`unpacked_limit`] allows.
    TooLarge,
    /// A record has a wrong size or form, or there are too few bytes (T-336).
    Record,
}

/// Most bytes that a batch of `compressed` bytes may unpack to: 64 MiB, or a hundredfold where that is more.
#[must_use]
pub fn unpacked_limit(compressed: usize) -> usize {
    compressed.saturating_mul(100).max(64 << 20)
}

/// Largest zstd window that is unpacked, 32 MiB: all levels up to 19 need at most 8.
const ZSTD_WINDOW_LOG: u32 = 25;

const BUFFER_BYTES: usize = 16 * 1024;

const XERIAL_MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
const XERIAL_HEADER_BYTES: usize = 16;

/// Bytes taken in order.
pub(super) trait Source {
    /// The next byte.
    fn byte(&mut self) -> Result<u8, Broken>;
    /// Passes over `count` bytes.
    fn skip(&mut self, count: usize) -> Result<(), Broken>;
    /// How many bytes were taken so far.
    fn taken(&self) -> usize;
    /// Whether nothing is left.
    fn is_spent(&mut self) -> Result<bool, Broken>;
}

/// Records that are not compressed.
pub(super) struct Plain<'a> {
    rest: &'a [u8],
    whole: usize,
}

impl<'a> Plain<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, whole: bytes.len() }
    }

    /// The next `count` bytes themselves.
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Broken> {
        let (front, rest) = self.rest.split_at_checked(count).ok_or(Broken::Record)?;
        self.rest = rest;
        Ok(front)
    }
}

impl Source for Plain<'_> {
    #[inline]
    fn byte(&mut self) -> Result<u8, Broken> {
        let (&first, rest) = self.rest.split_first().ok_or(Broken::Record)?;
        self.rest = rest;
        Ok(first)
    }

    #[inline]
    fn skip(&mut self, count: usize) -> Result<(), Broken> {
        self.rest = self.rest.get(count..).ok_or(Broken::Record)?;
        Ok(())
    }

    #[inline]
    fn taken(&self) -> usize {
        self.whole.saturating_sub(self.rest.len())
    }

    fn is_spent(&mut self) -> Result<bool, Broken> {
        Ok(self.rest.is_empty())
    }
}

/// Records behind a codec: one window of unpacked bytes at a time.
pub(super) struct Inflated<'a> {
    codec: Codec<'a>,
    window: Vec<u8>,
    at: usize,
    filled: usize,
    before_window: usize,
    limit: usize,
}

enum Codec<'a> {
    Gzip(Box<MultiGzDecoder<&'a [u8]>>),
    Snappy(Snappy<'a>),
    Lz4(Box<FrameDecoder<&'a [u8]>>),
    Zstd(Box<zstd::Decoder<'static, &'a [u8]>>),
}

impl<'a> Inflated<'a> {
    /// A stream over `bytes`, packed with Kafka's codec 1 to 4.
    pub(super) fn new(codec: i16, bytes: &'a [u8]) -> Result<Self, Broken> {
        Self::within(codec, bytes, unpacked_limit(bytes.len()))
    }

    /// The same, ending with an error where more than about `limit` bytes would have to be unpacked.
    pub(super) fn within(codec: i16, bytes: &'a [u8], limit: usize) -> Result<Self, Broken> {
        let codec = match codec {
            1 => Codec::Gzip(Box::new(MultiGzDecoder::new(bytes))),
            2 => Codec::Snappy(Snappy::new(bytes)?),
            3 => Codec::Lz4(Box::new(FrameDecoder::new(bytes))),
            4 => Codec::Zstd(Box::new(zstd_decoder(bytes)?)),
            _ => return Err(Broken::UnknownCodec),
        };
        Ok(Self { codec, window: Vec::new(), at: 0, filled: 0, before_window: 0, limit })
    }

    /// Puts the next unpacked bytes into the window; `false` at the end.
    fn fill(&mut self) -> Result<bool, Broken> {
        self.before_window = self.before_window.saturating_add(self.filled);
        self.at = 0;
        self.filled = 0;
        if self.before_window > self.limit {
            return Err(Broken::TooLarge);
        }
        let filled = match &mut self.codec {
            Codec::Gzip(decoder) => read_into(decoder.as_mut(), &mut self.window),
            Codec::Lz4(decoder) => read_into(decoder.as_mut(), &mut self.window),
            Codec::Zstd(decoder) => read_into(decoder.as_mut(), &mut self.window),
            Codec::Snappy(blocks) => blocks.next_block(&mut self.window, self.limit.saturating_sub(self.before_window)),
        }?;
        self.filled = filled;
        Ok(filled > 0)
    }

    fn left(&self) -> usize {
        self.filled.saturating_sub(self.at)
    }
}

impl Source for Inflated<'_> {
    #[inline]
    fn byte(&mut self) -> Result<u8, Broken> {
        if self.at >= self.filled && !self.fill()? {
            return Err(Broken::Record);
        }
        let byte = *self.window.get(self.at).ok_or(Broken::Record)?;
        self.at = self.at.saturating_add(1);
        Ok(byte)
    }

    fn skip(&mut self, count: usize) -> Result<(), Broken> {
        let mut count = count;
        while count > self.left() {
            count = count.saturating_sub(self.left());
            if !self.fill()? {
                return Err(Broken::Record);
            }
        }
        self.at = self.at.saturating_add(count);
        Ok(())
    }

    fn taken(&self) -> usize {
        self.before_window.saturating_add(self.at)
    }

    fn is_spent(&mut self) -> Result<bool, Broken> {
        Ok(self.left() == 0 && !self.fill()?)
    }
}

fn zstd_decoder(bytes: &[u8]) -> Result<zstd::Decoder<'static, &[u8]>, Broken> {
    let mut decoder = zstd::Decoder::with_buffer(bytes).map_err(|_| Broken::Compression)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(|_| Broken::Compression)?;
    Ok(decoder)
}

fn read_into(decoder: &mut impl Read, window: &mut Vec<u8>) -> Result<usize, Broken> {
    window.resize(BUFFER_BYTES, 0);
    decoder.read(window).map_err(|_| Broken::Compression)
}

/// Snappy, which has no stream of its own: either one bare block, or the blocks of the framing that Java's clients use.
struct Snappy<'a> {
    rest: &'a [u8],
    framed: bool,
}

impl<'a> Snappy<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self, Broken> {
        if !bytes.starts_with(&XERIAL_MAGIC) {
            return Ok(Self { rest: bytes, framed: false });
        }
        let rest = bytes.get(XERIAL_HEADER_BYTES..).ok_or(Broken::Compression)?;
        Ok(Self { rest, framed: true })
    }

    /// Unpacks blocks until one is not empty; 0 at the end.
    fn next_block(&mut self, window: &mut Vec<u8>, most: usize) -> Result<usize, Broken> {
        while !self.rest.is_empty() {
            let block = self.cut()?;
            let size = snap::raw::decompress_len(block).map_err(|_| Broken::Compression)?;
            // Three bytes stand for 64 at the most, so a claim far above that is a lie, told to make us allocate.
            if size > block.len().saturating_mul(32) {
                return Err(Broken::Compression);
            }
            if size > most {
                return Err(Broken::TooLarge);
            }
            window.resize(size, 0);
            let filled = snap::raw::Decoder::new().decompress(block, window).map_err(|_| Broken::Compression)?;
            if filled > 0 {
                return Ok(filled);
            }
        }
        Ok(0)
    }

    fn cut(&mut self) -> Result<&'a [u8], Broken> {
        if !self.framed {
            return Ok(std::mem::take(&mut self.rest));
        }
        let (length, rest) = self.rest.split_first_chunk::<4>().ok_or(Broken::Compression)?;
        let length = usize::try_from(i32::from_be_bytes(*length)).map_err(|_| Broken::Compression)?;
        let (block, rest) = rest.split_at_checked(length).ok_or(Broken::Compression)?;
        self.rest = rest;
        Ok(block)
    }
}

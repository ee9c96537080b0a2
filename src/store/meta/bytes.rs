//! Row bodies as bytes: big-endian, lengths before texts, one version byte in front of every body.

/// Builds a body.
pub(super) struct Out(Vec<u8>);

impl Out {
    pub(super) fn new(version: u8) -> Self {
        Self(vec![version])
    }

    pub(super) fn byte(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    pub(super) fn short(&mut self, value: i16) -> &mut Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(super) fn int(&mut self, value: i32) -> &mut Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(super) fn long(&mut self, value: i64) -> &mut Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(super) fn ulong(&mut self, value: u64) -> &mut Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(super) fn count(&mut self, value: usize) -> &mut Self {
        self.int(i32::try_from(value).unwrap_or(i32::MAX))
    }

    pub(super) fn text(&mut self, value: &str) -> &mut Self {
        self.count(value.len());
        self.0.extend(value.as_bytes());
        self
    }

    pub(super) fn done(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}

/// Takes a body apart; `None` as soon as it is shorter than it should be.
pub(super) struct In<'a>(&'a [u8]);

impl<'a> In<'a> {
    /// The body behind its version byte, if that version is one of ours.
    pub(super) fn new(body: &'a [u8], version: u8) -> Option<Self> {
        let (first, rest) = body.split_first()?;
        (*first == version).then_some(Self(rest))
    }

    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(front)
    }

    fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.fixed().map(u8::from_be_bytes)
    }

    pub(super) fn short(&mut self) -> Option<i16> {
        self.fixed().map(i16::from_be_bytes)
    }

    pub(super) fn int(&mut self) -> Option<i32> {
        self.fixed().map(i32::from_be_bytes)
    }

    pub(super) fn long(&mut self) -> Option<i64> {
        self.fixed().map(i64::from_be_bytes)
    }

    pub(super) fn ulong(&mut self) -> Option<u64> {
        self.fixed().map(u64::from_be_bytes)
    }

    pub(super) fn count(&mut self) -> Option<usize> {
        usize::try_from(self.int()?).ok()
    }

    pub(super) fn text(&mut self) -> Option<String> {
        let bytes = self.count()?;
        String::from_utf8(self.take(bytes)?.to_vec()).ok()
    }
}

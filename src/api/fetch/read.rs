//! Reads what a Fetch is answered with.

use bytes::Bytes;

use super::Wishes;
use super::open::{Asked, Open, Seen};
use crate::api::{Call, Ctx};
use crate::engine::batch::Header;
use crate::engine::fetch::{Bounds, Isolation, Offer, Room};
use crate::engine::{Offset, Refusal};
use crate::runtime::reading::{Batches, Reserved, Span};

/// Bytes that are read at a time for being counted.
const COUNT_BYTES: usize = 256 << 10;

/// Bytes that are copied from memory before other connections get their turn on the thread.
const TURN_BYTES: usize = 1 << 20;

const ZSTD: i16 = 4;

/// What one partition is answered with.
pub(super) enum Served {
    Refused(Refusal),
    Diverged { bounds: Bounds, epoch: i32, end: Offset, aborted: Option<Vec<(i64, Offset)>> },
    Records { bounds: Bounds, aborted: Option<Vec<(i64, Offset)>>, records: Bytes },
}

/// Counts the bytes below the limits, no further than to `enough`. What cannot be read counts as enough: the answer
/// will say why.
pub(super) async fn count(ctx: &Ctx, asked: &mut [Asked], seen: &[Seen], enough: usize) -> usize {
    let mut total = 0_usize;
    for (asked, seen) in asked.iter_mut().zip(seen) {
        let (Asked::Open(open), Seen::Valid { bounds, isolation, .. }) = (asked, seen) else { continue };
        let limit = bounds.limit(*isolation);
        while open.counted.to < limit && open.counted.bytes < open.max_bytes.max(1) && total < enough {
            let span = Span { from: open.counted.to, limit, max_bytes: COUNT_BYTES, at_least_one: true };
            match ctx.broker.read(&open.readable, span).await {
                Ok(Batches { bytes, next_offset }) if next_offset > open.counted.to => {
                    open.counted.bytes = open.counted.bytes.saturating_add(bytes.len());
                    open.counted.to = next_offset;
                }
                Ok(_) => break,
                Err(_) => return enough,
            }
            if total.saturating_add(open.counted.bytes) >= enough {
                return enough;
            }
        }
        total = total.saturating_add(open.counted.bytes.min(open.max_bytes.max(1)));
    }
    total
}

/// Reads partition after partition until the request's share of memory, or its own limit, is used up.
pub(super) async fn read(ctx: &Ctx, call: &Call, asked: &[Asked], seen: Vec<Seen>, wishes: &Wishes) -> Vec<Served> {
    let wanted = wanted(asked, &seen, wishes);
    let mut reserved = match wanted {
        0 => None,
        wanted => Some(ctx.broker.reads().reserve(wanted).await),
    };
    let mut room = Room::of(reserved.as_ref().map_or(0, Reserved::bytes).min(wanted));
    let mut served = Vec::with_capacity(seen.len());
    let mut since_turn = 0_usize;
    for (asked, seen) in asked.iter().zip(seen) {
        let one = match (asked, seen, &mut reserved) {
            (Asked::Open(open), Seen::Valid { .. }, Some(reserved)) if seen.has_records() => {
                let offer = room.offer(open.max_bytes);
                let one = Reading { ctx, call, open, reserved }.serve(seen, offer).await;
                one.unwrap_or_else(Served::Refused)
            }
            (_, seen, _) => empty(seen),
        };
        let bytes = one.bytes();
        room.took(bytes);
        served.push(one);
        since_turn = since_turn.saturating_add(bytes);
        if since_turn >= TURN_BYTES {
            since_turn = 0;
            tokio::task::yield_now().await;
        }
    }
    served
}

/// Bytes that the answer can take: no more than the limits of those partitions that have something, and never nothing
/// while one has (F-725).
fn wanted(asked: &[Asked], seen: &[Seen], wishes: &Wishes) -> usize {
    let with_records = asked.iter().zip(seen).filter(|(_, seen)| seen.has_records());
    let mut wanted = None;
    for (asked, _) in with_records {
        let Asked::Open(open) = asked else { continue };
        wanted = Some(wanted.unwrap_or(0_usize).saturating_add(open.max_bytes));
    }
    wanted.map_or(0, |wanted| wanted.min(wishes.max_bytes).max(1))
}

/// A partition without records: the list of aborted transactions is null or empty, as the isolation asks (T-515).
fn empty(seen: Seen) -> Served {
    match seen {
        Seen::Refused(refusal) => Served::Refused(refusal),
        Seen::Diverged { bounds, epoch, end, isolation } => {
            Served::Diverged { bounds, epoch, end, aborted: no_aborted(isolation) }
        }
        Seen::Valid { bounds, isolation, .. } => {
            Served::Records { bounds, aborted: no_aborted(isolation), records: Bytes::new() }
        }
    }
}

fn no_aborted(isolation: Isolation) -> Option<Vec<(i64, Offset)>> {
    match isolation {
        Isolation::ReadUncommitted => None,
        Isolation::ReadCommitted => Some(Vec::new()),
    }
}

impl Served {
    fn bytes(&self) -> usize {
        match self {
            Self::Refused(_) | Self::Diverged { .. } => 0,
            Self::Records { records, .. } => records.len(),
        }
    }
}

/// One partition being read.
struct Reading<'a> {
    ctx: &'a Ctx,
    call: &'a Call,
    open: &'a Open,
    reserved: &'a mut Reserved,
}

impl Reading<'_> {
    async fn serve(&mut self, seen: Seen, offer: Option<Offer>) -> Result<Served, Refusal> {
        let (Seen::Valid { bounds, from, isolation }, Some(offer)) = (seen, offer) else {
            return Ok(empty(seen));
        };
        let Batches { bytes, next_offset } = self.batches(from, bounds.limit(isolation), offer).await?;
        if bytes.is_empty() {
            return Ok(empty(seen));
        }
        if self.call.version < 10 && has_zstd(&bytes) {
            return Err(Refusal::UnsupportedCompressionType);
        }
        let aborted = match isolation {
            Isolation::ReadUncommitted => None,
            Isolation::ReadCommitted => Some(self.ctx.broker.aborted(&self.open.readable, from, next_offset).await?),
        };
        Ok(Served::Records { bounds, aborted, records: self.reserved.bind(bytes) })
    }

    /// Reads within the offer. A first batch larger than what is set apart is read again once there is room for it:
    /// nothing uncounted is held while waiting.
    async fn batches(&mut self, from: Offset, limit: Offset, offer: Offer) -> Result<Batches, Refusal> {
        let Offer { max_bytes, at_least_one } = offer;
        let span = Span { from, limit, max_bytes, at_least_one };
        let batches = self.ctx.broker.read(&self.open.readable, span).await?;
        let bytes = batches.bytes.len();
        if bytes <= self.reserved.bytes() || self.reserved.grow_to(bytes) {
            return Ok(batches);
        }
        drop(batches);
        self.reserved.release();
        *self.reserved = self.ctx.broker.reads().exactly(bytes).await;
        self.ctx.broker.read(&self.open.readable, Span { max_bytes: bytes, ..span }).await
    }
}

/// Whether a batch is packed in a way that clients before version 10 cannot unpack (F-737).
fn has_zstd(mut batches: &[u8]) -> bool {
    while let Some(header) = Header::read(batches) {
        if header.codec() == ZSTD {
            return true;
        }
        let after = header.size().and_then(|size| batches.get(size..));
        batches = after.unwrap_or_default();
    }
    false
}

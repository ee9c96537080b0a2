//! The partitions of a Fetch: opened once, looked at as often as they change.

use std::time::Duration;

use kafka_protocol::messages::FetchRequest;
use kafka_protocol::messages::fetch_request::FetchPartition;
use tokio::sync::watch;

use crate::api::Ctx;
use crate::api::together::together;
use crate::engine::fetch::{Bounds, Isolation, Position, Standing, judge};
use crate::engine::{Offset, PartId, Refusal};
use crate::runtime::partition::published::Published;
use crate::runtime::readable::{Readable, bounds_at};

/// One partition of the request.
pub(super) enum Asked {
    /// It cannot be read.
    Refused(Refusal),
    /// It can.
    Open(Box<Open>),
}

/// A partition that can be read.
pub(super) struct Open {
    pub(super) readable: Readable,
    watch: watch::Receiver<Published>,
    pub(super) position: Position,
    /// Bytes that the client wants of it.
    pub(super) max_bytes: usize,
    /// What has been counted of it while the request waits.
    pub(super) counted: Counted,
}

/// Bytes known to be there, up to an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) bytes: usize,
    pub(super) to: Offset,
}

/// What one look found of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    Refused(Refusal),
    Diverged { bounds: Bounds, epoch: i32, end: Offset, isolation: Isolation },
    Valid { bounds: Bounds, from: Offset, isolation: Isolation },
}

impl Asked {
    /// To be told of changes.
    pub(super) fn watch(&mut self) -> Option<&mut watch::Receiver<Published>> {
        match self {
            Self::Refused(_) => None,
            Self::Open(open) => Some(&mut open.watch),
        }
    }
}

impl Seen {
    /// Whether waiting cannot better it: it is answered at once (F-727).
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Refused(_) | Self::Diverged { .. } => true,
            Self::Valid { .. } => false,
        }
    }

    /// Whether there is something below the limit.
    pub(super) fn has_records(&self) -> bool {
        match self {
            Self::Refused(_) | Self::Diverged { .. } => false,
            Self::Valid { bounds, from, isolation } => *from < bounds.limit(*isolation),
        }
    }
}

/// Opens all partitions of a request, those that must be loaded side by side. Whatever is not open in time is refused
/// alone.
pub(super) async fn open(ctx: &Ctx, request: &FetchRequest, max_wait: Duration) -> Vec<Asked> {
    let catalog = ctx.broker.catalog();
    let parts = request.topics.iter().flat_map(|topic| {
        let known = catalog.topic(&topic.topic);
        let part = move |partition: &FetchPartition| known.and_then(|topic| topic.part(partition.partition));
        topic.partitions.iter().map(move |partition| (part(partition), partition))
    });
    let mut asked = Vec::new();
    let mut unloaded: Vec<(usize, PartId, &FetchPartition)> = Vec::new();
    for (at, (part, partition)) in parts.enumerate() {
        let opened = part.map_or(Some(Err(Refusal::UnknownTopicOrPartition)), |part| ctx.broker.readable_now(part));
        if let (None, Some(part)) = (&opened, part) {
            unloaded.push((at, part, partition));
        }
        asked.push(opened.map_or(Asked::Refused(Refusal::NotLeaderOrFollower), |opened| of(opened, partition)));
    }
    let load = |part: PartId| ctx.broker.readable_within(part, max_wait);
    let loaded = together(unloaded.iter().map(|(_, part, _)| load(*part)).collect()).await;
    for ((at, _, partition), opened) in unloaded.into_iter().zip(loaded) {
        if let Some(place) = asked.get_mut(at) {
            *place = of(opened, partition);
        }
    }
    asked
}

fn of(opened: Result<Readable, Refusal>, partition: &FetchPartition) -> Asked {
    let readable = match opened {
        Ok(readable) => readable,
        Err(refusal) => return Asked::Refused(refusal),
    };
    let offset = partition.fetch_offset;
    let (leader_epoch, last_epoch) = (partition.current_leader_epoch, partition.last_fetched_epoch);
    Asked::Open(Box::new(Open {
        watch: readable.watch(),
        readable,
        position: Position { offset, leader_epoch, last_epoch },
        max_bytes: usize::try_from(partition.partition_max_bytes).unwrap_or(0),
        counted: Counted { bytes: 0, to: offset },
    }))
}

/// Takes one view of every partition and judges the client's position by it (T-503).
pub(super) fn look(ctx: &Ctx, asked: &mut [Asked], isolation: Isolation) -> Vec<Seen> {
    let current = ctx.broker.identity().incarnation;
    let seen = |asked: &mut Asked| match asked {
        Asked::Refused(refusal) => Seen::Refused(*refusal),
        Asked::Open(open) => {
            let view = *open.watch.borrow_and_update();
            stand(open, &view, current, isolation).unwrap_or_else(Seen::Refused)
        }
    };
    asked.iter_mut().map(seen).collect()
}

fn stand(open: &Open, view: &Published, current: i32, isolation: Isolation) -> Result<Seen, Refusal> {
    let bounds = bounds_at(view, open.position.offset, isolation)?;
    let epoch_end = |epoch| open.readable.epoch_end(epoch, current, bounds.watermark);
    Ok(match judge(&open.position, &bounds, current, epoch_end)? {
        Standing::Valid => Seen::Valid { bounds, from: open.position.offset, isolation },
        Standing::Diverged { epoch, end } => Seen::Diverged { bounds, epoch, end, isolation },
    })
}

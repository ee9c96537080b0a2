//! The partitions of a Fetch: opened once, looked at as often as they change.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::api::Ctx;
use crate::api::together::together;
use crate::engine::catalog::{Catalog, Topic};
use crate::engine::fetch::session::Wanted;
use crate::engine::fetch::{Bounds, Isolation, Position, Standing, judge};
use crate::engine::{Offset, PartId, Refusal, TopicName};
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
    /// Which partition it is, if it can be read.
    pub(super) fn part(&self) -> Option<PartId> {
        match self {
            Self::Refused(_) => None,
            Self::Open(open) => Some(open.readable.part()),
        }
    }

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

/// Opens all these partitions, those that must be loaded side by side. Whatever is not open in time is refused alone.
pub(super) async fn open(ctx: &Ctx, wanted: &[&Wanted], max_wait: Duration) -> Vec<Asked> {
    let mut asked = Vec::with_capacity(wanted.len());
    let mut unloaded: Vec<(usize, PartId, &Wanted)> = Vec::new();
    for (at, (part, wanted)) in named(&ctx.broker.catalog(), wanted).enumerate() {
        let opened = part.map_or(Some(Err(Refusal::UnknownTopicOrPartition)), |part| ctx.broker.readable_now(part));
        if let (None, Some(part)) = (&opened, part) {
            unloaded.push((at, part, wanted));
        }
        asked.push(opened.map_or(Asked::Refused(Refusal::NotLeaderOrFollower), |opened| of(opened, wanted)));
    }
    let load = |part: PartId| ctx.broker.readable_within(part, max_wait);
    let loaded = together(unloaded.iter().map(|(_, part, _)| load(*part)).collect()).await;
    for ((at, _, wanted), opened) in unloaded.into_iter().zip(loaded) {
        if let Some(place) = asked.get_mut(at) {
            *place = of(opened, wanted);
        }
    }
    asked
}

/// The partitions that stand under the names now. A topic is looked up once for those of it that follow one another.
fn named<'a>(catalog: &Catalog, wanted: &[&'a Wanted]) -> impl Iterator<Item = (Option<PartId>, &'a Wanted)> {
    let mut last: Option<(&TopicName, Option<&Arc<Topic>>)> = None;
    wanted.iter().map(move |wanted| {
        let known = match last {
            Some((name, known)) if *name == wanted.topic => known,
            Some(_) | None => catalog.topic(wanted.topic.as_str()),
        };
        last = Some((&wanted.topic, known));
        (known.and_then(|topic| topic.part(wanted.index)), *wanted)
    })
}

fn of(opened: Result<Readable, Refusal>, wanted: &Wanted) -> Asked {
    let readable = match opened {
        Ok(readable) => readable,
        Err(refusal) => return Asked::Refused(refusal),
    };
    Asked::Open(Box::new(Open {
        watch: readable.watch(),
        readable,
        position: wanted.position,
        max_bytes: wanted.max_bytes,
        counted: Counted { bytes: 0, to: wanted.position.offset },
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

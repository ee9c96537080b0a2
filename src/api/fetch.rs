//! Fetch (key 1, versions 4 to 12), in a session or without one (KIP-227).

mod ask;
mod open;
mod read;

use std::pin::{Pin, pin};
use std::time::Duration;

use kafka_protocol::messages::FetchRequest;
use tokio::time::sleep;

use super::codes::Codes;
use super::service::Reply;
use super::together::first;
use super::{Call, Ctx};
use crate::engine::fetch::session::{Answered, Session, Told, Wanted};
use crate::engine::fetch::{FETCH_MOST_BYTES, Isolation};
use crate::engine::{PartId, Refusal, TopicName};
use crate::metrics::Metrics;
use crate::wire::codes::NONE;
use crate::wire::fetch_response::{Partition, Writer};
use open::{Asked, Seen};
use read::{Served, count, read};

/// Answers one request.
pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: FetchRequest = match call.decode() {
        Ok(request) => request,
        Err(reply) => return reply,
    };
    let mut codes = Codes::new(ctx, call);
    let mut session = match ctx.broker.fetch_session(request.session_id, request.session_epoch) {
        Ok(session) => session,
        Err(refusal) => return Reply::Answer(Writer::refusal(call.version, codes.of(Some(refusal)))),
    };
    let (wishes, isolation) = (Wishes::of(&request), isolation(&request));
    // A whole request names all its partitions, another one what is changed in its session.
    let mut named = ask::wanted(&request);
    call.note_places(named.iter().map(|wanted| (wanted.topic.as_str(), wanted.index)));
    if let Some(held) = session.session_mut() {
        held.apply(std::mem::take(&mut named), ask::forgotten(&request));
    }
    drop(request);
    let wanted: Vec<&Wanted> = session.session().map_or_else(|| named.iter().collect(), |held| held.wanted().collect());
    let found = match isolation {
        Ok(isolation) => fetch(ctx, call, &wanted, (isolation, &wishes)).await,
        Err(refusal) => wanted.iter().map(|_| Found { part: None, served: Served::Refused(refusal) }).collect(),
    };
    let answered: Vec<Answered> = found.iter().map(Found::answered).collect();
    let news = session.session().map(|held| held.news(&answered));
    let topics = topics(call, &wanted, (found, news.as_deref()), &mut codes);
    if let Some(held) = session.session_mut() {
        held.note(&answered);
    }
    let id = session.end(|| fresh(named, &answered));
    let mut writer = Writer::begin(call.version, (NONE, id), topics.len());
    for (name, partitions) in topics {
        writer.topic(name.as_str(), partitions.into_iter());
    }
    Reply::Answer(writer.end())
}

/// A session that begins with these answers. Where a partition was named twice nothing counts as told.
fn fresh(named: Vec<Wanted>, answered: &[Answered]) -> Session {
    let mut session = Session::of(named);
    if session.len() == answered.len() {
        session.note(answered);
    }
    session
}

/// What a partition is answered with, and which one it is if it can be read.
struct Found {
    part: Option<PartId>,
    served: Served,
}

impl Found {
    fn answered(&self) -> Answered {
        let Some(part) = self.part else { return Answered::Refused };
        match &self.served {
            Served::Refused(_) => Answered::Refused,
            Served::Diverged { bounds, .. } => Answered::Diverged(Told { part, bounds: *bounds }),
            Served::Records { bounds, records, .. } if records.is_empty() => {
                Answered::Empty(Told { part, bounds: *bounds })
            }
            Served::Records { bounds, .. } => Answered::Records(Told { part, bounds: *bounds }),
        }
    }
}

/// What the request asks for as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wishes {
    /// Bytes of the whole answer (F-721).
    max_bytes: usize,
    /// Bytes below which the answer waits (F-722).
    min_bytes: usize,
    /// How long it waits at most.
    max_wait: Duration,
}

impl Wishes {
    fn of(request: &FetchRequest) -> Self {
        let max_bytes = usize::try_from(request.max_bytes).unwrap_or(0).min(FETCH_MOST_BYTES);
        Self {
            max_bytes,
            min_bytes: usize::try_from(request.min_bytes).unwrap_or(0).min(max_bytes),
            max_wait: Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0)),
        }
    }
}

/// The isolation of a consumer's request. Followers there are none (F-736).
fn isolation(request: &FetchRequest) -> Result<Isolation, Refusal> {
    if *request.replica_id >= 0 {
        return Err(Refusal::InvalidRequest);
    }
    Isolation::of(request.isolation_level)
}

/// Waits until there is enough to answer with, or for as long as the client will wait and the broker serves, then reads
/// (F-727, T-516).
async fn fetch(ctx: &Ctx, call: &Call, wanted: &[&Wanted], (isolation, wishes): (Isolation, &Wishes)) -> Vec<Found> {
    let mut asked = open::open(ctx, wanted, wishes.max_wait).await;
    let mut patience = pin!(patience(ctx, wishes.max_wait));
    let mut is_over = wishes.max_wait.is_zero();
    loop {
        let seen = open::look(ctx, &mut asked, isolation);
        let at_once = is_over || seen.is_empty() || seen.iter().any(Seen::is_final);
        if at_once || enough(ctx, &mut asked, &seen, wishes).await {
            let served = read(ctx, call, &asked, seen, wishes).await;
            wanted
                .iter()
                .zip(&served)
                .for_each(|(wanted, served)| tell(ctx.broker.metrics(), wanted, served, isolation));
            return asked.iter().zip(served).map(|(asked, served)| Found { part: asked.part(), served }).collect();
        }
        is_over = !changed(&mut asked, patience.as_mut()).await;
    }
}

/// Counts what a partition is answered with.
fn tell(metrics: &Metrics, wanted: &Wanted, served: &Served, isolation: Isolation) {
    let Served::Records { bounds, aborted, records } = served else { return };
    if !records.is_empty() {
        metrics.topic(&wanted.topic).fetched(u64::try_from(records.len()).unwrap_or(0));
        metrics.aborted_ranges(aborted.as_ref().map_or(0, |ranges| u64::try_from(ranges.len()).unwrap_or(0)));
    } else if isolation == Isolation::ReadCommitted
        && bounds.limit(isolation) < bounds.watermark
        && wanted.position.offset >= bounds.limit(isolation)
    {
        metrics.fetch_held();
    }
}

/// Whether `min_bytes` are there below the limit. One byte is there if one record is; more are counted by being read,
/// each batch once however often the answer is put off.
async fn enough(ctx: &Ctx, asked: &mut [Asked], seen: &[Seen], wishes: &Wishes) -> bool {
    if wishes.min_bytes <= 1 {
        return wishes.min_bytes == 0 || seen.iter().any(Seen::has_records);
    }
    count(ctx, asked, seen, wishes.min_bytes).await >= wishes.min_bytes
}

/// Comes when the client will not wait any longer, or cannot because the broker is about to end.
async fn patience(ctx: &Ctx, max_wait: Duration) {
    tokio::select! {
        () = sleep(max_wait) => {}
        () = ctx.broker.stopping() => {}
    }
}

/// Waits for a partition to publish another view, which it says, or for the end of the patience. A view that came after
/// `look` took its own is seen at once: the watch knows which one was taken.
async fn changed(asked: &mut [Asked], patience: Pin<&mut impl Future<Output = ()>>) -> bool {
    let watches = asked.iter_mut().filter_map(Asked::watch);
    tokio::select! {
        // A watch that ends belongs to a partition that is gone, which its last view says.
        _ = first(watches.map(|watch| watch.changed()).collect()) => true,
        () = patience => false,
    }
}

/// The answer's partitions by topic, all or those that are news, in their order.
fn topics(
    call: &Call,
    wanted: &[&Wanted],
    (found, news): (Vec<Found>, Option<&[bool]>),
    codes: &mut Codes<'_>,
) -> Vec<(TopicName, Vec<Partition>)> {
    let mut topics: Vec<(TopicName, Vec<Partition>)> = Vec::new();
    for (at, (wanted, found)) in wanted.iter().zip(found).enumerate() {
        if news.is_some_and(|news| news.get(at) != Some(&true)) {
            continue;
        }
        let partition = partition(call, wanted.index, found.served, codes);
        match topics.last_mut().filter(|(name, _)| *name == wanted.topic) {
            Some((_, partitions)) => partitions.push(partition),
            None => topics.push((wanted.topic.clone(), vec![partition])),
        }
    }
    topics
}

fn partition(call: &Call, index: i32, served: Served, codes: &mut Codes<'_>) -> Partition {
    let (bounds, diverging, aborted, records) = match served {
        Served::Refused(refusal) => {
            // Old clients do not know that a disk can fail (F-728). An unknown partition has an empty list (F-733).
            let is_disk = refusal == Refusal::KafkaStorageError;
            let told = if is_disk && call.version <= 5 { Refusal::NotLeaderOrFollower } else { refusal };
            let aborted = (refusal == Refusal::UnknownTopicOrPartition).then(Vec::new);
            return Partition::refused(index, codes.of(Some(told)), aborted);
        }
        Served::Diverged { bounds, epoch, end, aborted } => (bounds, Some((epoch, end)), aborted, bytes::Bytes::new()),
        Served::Records { bounds, aborted, records } => (bounds, None, aborted, records),
    };
    Partition {
        index,
        error_code: NONE,
        high_watermark: bounds.watermark,
        last_stable_offset: bounds.limit(Isolation::ReadCommitted),
        log_start_offset: bounds.log_start,
        diverging,
        aborted,
        records,
    }
}

#[cfg(test)]
mod tests;

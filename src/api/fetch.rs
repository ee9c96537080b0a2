//! Fetch (key 1, versions 4 to 12). There are no fetch sessions: every request names its partitions (F-715).

mod open;
mod read;

use std::pin::{Pin, pin};
use std::time::Duration;

use kafka_protocol::messages::{FetchRequest, TopicName};
use tokio::time::sleep;

use super::codes::Codes;
use super::service::Reply;
use super::together::first;
use super::{Call, Ctx};
use crate::engine::Refusal;
use crate::engine::fetch::{FETCH_MOST_BYTES, Isolation};
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
    // Epochs 0 and -1 are whole requests, whatever session they leave behind (F-703 to F-706).
    if !matches!(request.session_epoch, -1..=0) {
        let mut codes = Codes::new(ctx, call);
        let code = codes.of(Some(Refusal::FetchSessionIdNotFound));
        return Reply::Answer(Writer::refusal(call.version, code));
    }
    let wishes = Wishes::of(&request);
    let served = match isolation(&request) {
        Ok(isolation) => fetch(ctx, call, &request, isolation, &wishes).await,
        Err(refusal) => names(&request).map(|_| Served::Refused(refusal)).collect(),
    };
    write(ctx, call, &request, served)
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

/// Each partition's topic, in the order of the request.
fn names(request: &FetchRequest) -> impl Iterator<Item = &TopicName> {
    request.topics.iter().flat_map(|topic| topic.partitions.iter().map(|_| &topic.topic))
}

/// Waits until there is enough to answer with, or for as long as the client will wait and the broker serves, then reads
/// (F-727, T-516).
async fn fetch(ctx: &Ctx, call: &Call, request: &FetchRequest, isolation: Isolation, wishes: &Wishes) -> Vec<Served> {
    let mut asked = open::open(ctx, request, wishes.max_wait).await;
    let mut patience = pin!(patience(ctx, wishes.max_wait));
    let mut is_over = wishes.max_wait.is_zero();
    loop {
        let seen = open::look(ctx, &mut asked, isolation);
        let at_once = is_over || seen.is_empty() || seen.iter().any(Seen::is_final);
        if at_once || enough(ctx, &mut asked, &seen, wishes).await {
            return read(ctx, call, &asked, seen, wishes).await;
        }
        is_over = !changed(&mut asked, patience.as_mut()).await;
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

fn write(ctx: &Ctx, call: &Call, request: &FetchRequest, served: Vec<Served>) -> Reply {
    let mut codes = Codes::new(ctx, call);
    let mut served = served.into_iter();
    let mut writer = Writer::begin(call.version, NONE, request.topics.len());
    for topic in &request.topics {
        let asked = topic.partitions.iter();
        let partitions = asked.map(|asked| match served.next() {
            Some(served) => partition(call, asked.partition, served, &mut codes),
            None => Partition::refused(asked.partition, codes.of(Some(Refusal::NotLeaderOrFollower)), None),
        });
        writer.topic(&topic.topic, partitions);
    }
    Reply::Answer(writer.end())
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

//! WriteTxnMarkers (27): an operator's tool aborts a transaction that holds readers back (T-409, T-840).

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::messages::write_txn_markers_request::WritableTxnMarker;
use kafka_protocol::messages::write_txn_markers_response::{
    WritableTxnMarkerPartitionResult, WritableTxnMarkerResult, WritableTxnMarkerTopicResult,
};
use kafka_protocol::messages::{WriteTxnMarkersRequest, WriteTxnMarkersResponse};

use super::codes::Codes;
use super::service::Reply;
use super::together::together;
use super::words::producer;
use super::{Call, Ctx};
use crate::engine::catalog::Catalog;
use crate::engine::partition::{AdminMark, Protocol};
use crate::engine::{Outcome, PartId, Producer, Refusal};

/// How many markers one request may ask for, the same one counted once. Tools ask for one at a time.
const MOST_MARKERS: usize = 10_000;

/// A marker, wherever it is to go: whose, how it ends, and the coordinator epoch.
type Kind = (Producer, Outcome, i32);

/// What became of one marker in one partition.
type Written = BTreeMap<(Kind, PartId), Result<(), Refusal>>;

/// All markers are asked for side by side, each once however often it is named, and the answer leaves when every one of them
/// is on disk or refused.
pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: WriteTxnMarkersRequest = match call.decode() {
        Ok(request) => request,
        Err(close) => return close,
    };
    let catalog = ctx.broker.catalog();
    let mut asked: BTreeMap<Kind, BTreeSet<PartId>> = BTreeMap::new();
    for marker in &request.markers {
        asked.entry(kind(marker)).or_default().extend(named(&catalog, marker).flatten());
    }
    let mut written = Written::new();
    if asked.values().map(BTreeSet::len).fold(0, usize::saturating_add) <= MOST_MARKERS {
        let writes = asked.into_iter().map(|(kind, parts)| write(ctx, kind, parts.into_iter().collect()));
        written.extend(together(writes.collect()).await.into_iter().flatten());
    }
    let mut codes = Codes::new(ctx, call);
    let shown = request.markers.iter().map(|marker| show(marker, &catalog, &written, &mut codes));
    call.encode(&WriteTxnMarkersResponse::default().with_markers(shown.collect()))
}

fn kind(marker: &WritableTxnMarker) -> Kind {
    let outcome = if marker.transaction_result { Outcome::Commit } else { Outcome::Abort };
    (producer(marker.producer_id, marker.producer_epoch), outcome, marker.coordinator_epoch)
}

/// The partitions that a marker names, in their order; none for one that there is not.
fn named<'a>(catalog: &'a Catalog, marker: &'a WritableTxnMarker) -> impl Iterator<Item = Option<PartId>> + 'a {
    marker.topics.iter().flat_map(|topic| {
        let known = catalog.topic(&topic.name);
        topic.partition_indexes.iter().map(move |index| known.and_then(|topic| topic.part(*index)))
    })
}

/// Asks for one kind of marker in its partitions.
async fn write(ctx: &Ctx, kind: Kind, parts: Vec<PartId>) -> Vec<((Kind, PartId), Result<(), Refusal>)> {
    let (producer, outcome, coordinator_epoch) = kind;
    let mark = AdminMark { producer, outcome, coordinator_epoch, protocol: Protocol::Classic };
    let written = ctx.broker.write_markers(mark, &parts).await;
    parts.into_iter().zip(written).map(|(part, written)| ((kind, part), written)).collect()
}

/// INVALID_REQUEST where nothing was written, for the request asks for too much.
fn show(
    marker: &WritableTxnMarker,
    catalog: &Catalog,
    written: &Written,
    codes: &mut Codes<'_>,
) -> WritableTxnMarkerResult {
    let kind = kind(marker);
    let mut parts = named(catalog, marker);
    let topics = marker.topics.iter().map(|topic| {
        let partitions = topic.partition_indexes.iter().map(|index| {
            let result = match parts.next().flatten() {
                Some(part) => written.get(&(kind, part)).copied().unwrap_or(Err(Refusal::InvalidRequest)),
                None => Err(Refusal::UnknownTopicOrPartition),
            };
            let code = codes.of(result.err());
            WritableTxnMarkerPartitionResult::default().with_partition_index(*index).with_error_code(code)
        });
        WritableTxnMarkerTopicResult::default().with_name(topic.name.clone()).with_partitions(partitions.collect())
    });
    WritableTxnMarkerResult::default().with_producer_id(marker.producer_id).with_topics(topics.collect())
}

//! WriteTxnMarkers (27): an operator's tool aborts a transaction that holds readers back (T-409, T-840).

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
use crate::engine::{Outcome, PartId, Refusal};

/// What became of one partition.
type Written = Result<(), Refusal>;

/// All markers are asked for side by side, and the answer leaves when every one of them is on disk or refused.
pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: WriteTxnMarkersRequest = match call.decode() {
        Ok(request) => request,
        Err(close) => return close,
    };
    let catalog = ctx.broker.catalog();
    let written = together(request.markers.iter().map(|marker| write(ctx, &catalog, marker)).collect()).await;
    let mut codes = Codes::new(ctx, call);
    let shown = request.markers.into_iter().zip(written).map(|(marker, written)| show(marker, written, &mut codes));
    call.encode(&WriteTxnMarkersResponse::default().with_markers(shown.collect()))
}

/// Asks for one marker in its partitions; gives a result for each that was named, in their order.
async fn write(ctx: &Ctx, catalog: &Catalog, marker: &WritableTxnMarker) -> Vec<Written> {
    let named = marker.topics.iter().flat_map(|topic| {
        let known = catalog.topic(&topic.name);
        topic.partition_indexes.iter().map(move |index| known.and_then(|topic| topic.part(*index)))
    });
    let named: Vec<Option<PartId>> = named.collect();
    let mark = AdminMark {
        producer: producer(marker.producer_id, marker.producer_epoch),
        outcome: if marker.transaction_result { Outcome::Commit } else { Outcome::Abort },
        coordinator_epoch: marker.coordinator_epoch,
        protocol: Protocol::Classic,
    };
    let parts: Vec<PartId> = named.iter().copied().flatten().collect();
    let mut written = ctx.broker.write_markers(mark, &parts).await.into_iter();
    let result = |part: Option<PartId>| match part {
        Some(_) => written.next().unwrap_or(Err(Refusal::NotLeaderOrFollower)),
        None => Err(Refusal::UnknownTopicOrPartition),
    };
    named.into_iter().map(result).collect()
}

fn show(marker: WritableTxnMarker, written: Vec<Written>, codes: &mut Codes<'_>) -> WritableTxnMarkerResult {
    let mut written = written.into_iter();
    let topics = marker.topics.into_iter().map(|topic| {
        let partitions = topic.partition_indexes.into_iter().map(|index| {
            let code = codes.of(written.next().and_then(Result::err));
            WritableTxnMarkerPartitionResult::default().with_partition_index(index).with_error_code(code)
        });
        WritableTxnMarkerTopicResult::default().with_name(topic.name).with_partitions(partitions.collect())
    });
    WritableTxnMarkerResult::default().with_producer_id(marker.producer_id).with_topics(topics.collect())
}

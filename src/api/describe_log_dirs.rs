//! DescribeLogDirs (35): the data directory, and how much of it each partition takes (M-243).

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::messages::describe_log_dirs_request::DescribableLogDirTopic;
use kafka_protocol::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use kafka_protocol::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse};
use kafka_protocol::protocol::StrBytes;

use super::codes::Codes;
use super::service::Reply;
use super::words::{by_topic, topic};
use super::{Call, Ctx};
use crate::engine::PartId;
use crate::engine::catalog::Catalog;
use crate::runtime::sizes::DiskUse;

#[cfg(test)]
mod tests;

/// There is one directory, and it is told of whatever partitions are asked for (M-243).
pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: DescribeLogDirsRequest = match call.decode() {
        Ok(request) => request,
        Err(close) => return close,
    };
    let catalog = ctx.broker.catalog();
    let looked = ctx.broker.disk_use(asked(&catalog, request.topics.as_deref())).await;
    let mut codes = Codes::new(ctx, call);
    let code = codes.of(looked.as_ref().err().copied());
    let held = looked.unwrap_or(DiskUse { disk: None, parts: Vec::new() });
    let (total, usable) = held.disk.map_or((-1, -1), |(total, usable)| (signed(total), signed(usable)));
    let dir = DescribeLogDirsResult::default()
        .with_error_code(code)
        .with_log_dir(StrBytes::from_string(ctx.config.data_dir.display().to_string()))
        .with_topics(topics(&catalog, held.parts))
        .with_total_bytes(total)
        .with_usable_bytes(usable);
    call.encode(&DescribeLogDirsResponse::default().with_results(vec![dir]))
}

/// The partitions that are asked for and exist, each once; all for no list.
fn asked(catalog: &Catalog, topics: Option<&[DescribableLogDirTopic]>) -> Vec<PartId> {
    let Some(topics) = topics else {
        return catalog.iter().flat_map(|topic| topic.parts.iter().copied()).collect();
    };
    let parts = topics.iter().flat_map(|topic| {
        let known = catalog.topic(&topic.topic);
        topic.partitions.iter().filter_map(move |index| known?.part(*index))
    });
    parts.collect::<BTreeSet<_>>().into_iter().collect()
}

fn topics(catalog: &Catalog, sizes: Vec<(PartId, u64)>) -> Vec<DescribeLogDirsTopic> {
    let shown = |(name, partitions): (_, BTreeMap<i32, u64>)| {
        let partition = |(index, bytes): (i32, u64)| {
            DescribeLogDirsPartition::default().with_partition_index(index).with_partition_size(signed(bytes))
        };
        let partitions = partitions.into_iter().map(partition).collect();
        DescribeLogDirsTopic::default().with_name(topic(&name)).with_partitions(partitions)
    };
    by_topic(catalog, sizes).into_iter().map(shown).collect()
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

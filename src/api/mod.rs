//! Translates: one file per request kind. No state, no rules.
//!
//! A handler decodes its request, speaks to the broker in our own words, and encodes what came of it. What a refusal is
//! called in a version is `wire::codes`' business.

mod add_offsets_to_txn;
mod add_partitions_to_txn;
mod alter_configs;
mod api_versions;
mod codes;
mod create_partitions;
mod create_topics;
pub mod ctx;
mod delete_groups;
mod delete_records;
mod delete_topics;
mod describe_cluster;
mod describe_configs;
mod describe_groups;
mod describe_log_dirs;
mod describe_producers;
mod describe_transactions;
mod end_txn;
mod fetch;
mod find_coordinator;
mod heartbeat;
mod incremental_alter_configs;
mod init_producer_id;
mod join_group;
mod leave_group;
mod list_groups;
mod list_offsets;
mod list_transactions;
mod metadata;
mod offset_commit;
mod offset_delete;
mod offset_fetch;
mod offset_for_leader_epoch;
mod positions;
mod produce;
pub mod service;
mod sync_group;
mod together;
pub mod traces;
mod txn_offset_commit;
mod words;
mod write_txn_markers;

use std::sync::Arc;

pub use ctx::{Call, Ctx};
use service::{Incoming, Peer, Pending, Reply, Service};
use traces::Traces;

use crate::wire::Api;

/// Serves every API that the version table lists.
pub struct Handlers {
    ctx: Arc<Ctx>,
    traces: Option<Arc<dyn Traces>>,
}

impl Handlers {
    /// Handlers that speak to this broker.
    #[must_use]
    pub fn new(ctx: Arc<Ctx>) -> Self {
        Self { ctx, traces: None }
    }

    /// The same, with requests told to `traces`.
    #[must_use]
    pub fn traced(self, traces: Option<Arc<dyn Traces>>) -> Self {
        Self { traces, ..self }
    }
}

impl Service for Handlers {
    fn call(&self, peer: &Arc<Peer>, request: Incoming) -> Pending {
        let trace = self.traces.as_ref().and_then(|traces| traces.request(peer, &request));
        let (ctx, call) = (Arc::clone(&self.ctx), Call::new(peer, request));
        let Some(trace) = trace else {
            return Box::pin(async move { dispatch(&ctx, &call).await });
        };
        let call = call.traced(Arc::clone(&trace));
        trace.follow(Box::pin(async move {
            let reply = dispatch(&ctx, &call).await;
            call.answered(&reply);
            reply
        }))
    }
}

async fn dispatch(ctx: &Ctx, call: &Call) -> Reply {
    match call.api {
        Api::Produce => produce::answer(ctx, call).await,
        Api::Fetch => fetch::answer(ctx, call).await,
        Api::ListOffsets => list_offsets::answer(ctx, call).await,
        Api::OffsetForLeaderEpoch => offset_for_leader_epoch::answer(ctx, call).await,
        Api::Metadata => metadata::answer(ctx, call).await,
        Api::ApiVersions => api_versions::answer(ctx, call).await,
        Api::CreateTopics => create_topics::answer(ctx, call).await,
        Api::DeleteTopics => delete_topics::answer(ctx, call).await,
        Api::DeleteRecords => delete_records::answer(ctx, call).await,
        Api::CreatePartitions => create_partitions::answer(ctx, call).await,
        Api::AlterConfigs => alter_configs::answer(ctx, call).await,
        Api::IncrementalAlterConfigs => incremental_alter_configs::answer(ctx, call).await,
        Api::DescribeConfigs => describe_configs::answer(ctx, call).await,
        Api::DescribeLogDirs => describe_log_dirs::answer(ctx, call).await,
        Api::DescribeCluster => describe_cluster::answer(ctx, call).await,
        Api::OffsetCommit => offset_commit::answer(ctx, call).await,
        Api::OffsetFetch => offset_fetch::answer(ctx, call).await,
        Api::FindCoordinator => find_coordinator::answer(ctx, call).await,
        Api::JoinGroup => join_group::answer(ctx, call).await,
        Api::Heartbeat => heartbeat::answer(ctx, call).await,
        Api::LeaveGroup => leave_group::answer(ctx, call).await,
        Api::SyncGroup => sync_group::answer(ctx, call).await,
        Api::DescribeGroups => describe_groups::answer(ctx, call).await,
        Api::ListGroups => list_groups::answer(ctx, call).await,
        Api::DeleteGroups => delete_groups::answer(ctx, call).await,
        Api::OffsetDelete => offset_delete::answer(ctx, call).await,
        Api::InitProducerId => init_producer_id::answer(ctx, call).await,
        Api::AddPartitionsToTxn => add_partitions_to_txn::answer(ctx, call).await,
        Api::AddOffsetsToTxn => add_offsets_to_txn::answer(ctx, call).await,
        Api::EndTxn => end_txn::answer(ctx, call).await,
        Api::TxnOffsetCommit => txn_offset_commit::answer(ctx, call).await,
        Api::WriteTxnMarkers => write_txn_markers::answer(ctx, call).await,
        Api::DescribeProducers => describe_producers::answer(ctx, call).await,
        Api::DescribeTransactions => describe_transactions::answer(ctx, call).await,
        Api::ListTransactions => list_transactions::answer(ctx, call).await,
    }
}

#[cfg(test)]
mod data_tests;

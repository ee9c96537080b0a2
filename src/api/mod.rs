//! Translates: one file per request kind. No state, no rules.
//!
//! A handler decodes its request, speaks to the broker in our own words, and encodes what came of it. What a refusal is
//! called in a version is `wire::codes`' business.

mod api_versions;
mod create_topics;
pub mod ctx;
mod delete_topics;
mod describe_cluster;
mod describe_configs;
mod metadata;
mod refusals;
pub mod service;

use std::sync::Arc;

pub use ctx::{Call, Ctx};
use service::{Incoming, Peer, Pending, Reply, Service};

use crate::wire::Api;

/// Serves every API that the version table lists.
pub struct Handlers {
    ctx: Arc<Ctx>,
}

impl Handlers {
    /// Handlers that speak to this broker.
    #[must_use]
    pub fn new(ctx: Arc<Ctx>) -> Self {
        Self { ctx }
    }
}

impl Service for Handlers {
    fn call(&self, peer: &Arc<Peer>, request: Incoming) -> Pending {
        let (ctx, call) = (Arc::clone(&self.ctx), Call::new(peer, request));
        Box::pin(async move { dispatch(&ctx, &call).await })
    }
}

async fn dispatch(ctx: &Ctx, call: &Call) -> Reply {
    match call.api {
        Api::Produce => Reply::Nothing,
        Api::Metadata => metadata::answer(ctx, call).await,
        Api::ApiVersions => api_versions::answer(ctx, call).await,
        Api::CreateTopics => create_topics::answer(ctx, call).await,
        Api::DeleteTopics => delete_topics::answer(ctx, call).await,
        Api::DescribeConfigs => describe_configs::answer(ctx, call).await,
        Api::DescribeCluster => describe_cluster::answer(ctx, call).await,
        _ => Reply::Nothing,
    }
}

//! Metadata (3): where everything is, and topics made by being mentioned.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{BrokerId, MetadataRequest, MetadataResponse};
use kafka_protocol::protocol::StrBytes;

use super::codes::Codes;
use super::describe_cluster::ALL_CLUSTER_OPERATIONS;
use super::service::Reply;
use super::{Call, Ctx};
use crate::engine::Refusal;
use crate::engine::catalog::{AutoCreate, Catalog, CreateTopic, Named, Topic};

#[cfg(test)]
mod tests;

/// Every operation on a topic that there is, as bits (M-215).
const ALL_TOPIC_OPERATIONS: i32 = 0xdf8;

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    /// Every topic there is.
    All,
    /// These, each named once.
    Named(Vec<StrBytes>),
}

pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: MetadataRequest = match call.decode() {
        Ok(request) => request,
        Err(close) => return close,
    };
    let mut codes = Codes::new(ctx, call);
    let epoch = ctx.broker.identity().incarnation;
    let node = BrokerId(ctx.broker.identity().node_id);
    let mut topics: Vec<MetadataResponseTopic> = match asked(&request, call.version) {
        None => return Reply::Close("Metadata asks for a topic without a name".into()),
        Some(Asked::All) => ctx.broker.catalog().iter().map(|topic| complete(topic, node, epoch)).collect(),
        Some(Asked::Named(names)) => {
            let found = find(ctx, &names, auto_create(ctx, &request)).await;
            let shown = names.into_iter().zip(found).map(|(name, found)| match found {
                Ok(topic) => complete(&topic, node, epoch),
                Err(refusal) => absent(name, codes.of(Some(refusal))),
            });
            shown.collect()
        }
    };
    if request.include_topic_authorized_operations {
        for topic in &mut topics {
            topic.topic_authorized_operations = ALL_TOPIC_OPERATIONS;
        }
    }
    let mut response = cluster(ctx, call).with_topics(topics);
    if request.include_cluster_authorized_operations {
        response.cluster_authorized_operations = ALL_CLUSTER_OPERATIONS;
    }
    call.encode(&response)
}

/// The one broker, at the address of the listener the request came by (M-209).
fn cluster(ctx: &Ctx, call: &Call) -> MetadataResponse {
    let identity = ctx.broker.identity();
    let node = BrokerId(identity.node_id);
    let (host, port) = ctx.address_for(&call.peer.listener);
    let broker = MetadataResponseBroker::default()
        .with_node_id(node)
        .with_host(StrBytes::from_string(host.to_owned()))
        .with_port(i32::from(port));
    MetadataResponse::default()
        .with_brokers(vec![broker])
        .with_cluster_id(Some(StrBytes::from_string(identity.cluster_id.clone())))
        .with_controller_id(node)
}

/// M-204, M-207; none if a topic has no name, which these versions do not allow.
fn asked(request: &MetadataRequest, version: i16) -> Option<Asked> {
    let topics = match &request.topics {
        None => return Some(Asked::All),
        Some(topics) if topics.is_empty() && version == 0 => return Some(Asked::All),
        Some(topics) => topics,
    };
    let mut seen = BTreeSet::new();
    let mut names = Vec::new();
    for topic in topics {
        let name: &StrBytes = topic.name.as_ref()?;
        if seen.insert(name.as_str()) {
            names.push(name.clone());
        }
    }
    Some(Asked::Named(names))
}

/// M-210. Below version 4 the request has no such flag and the codec reads it as true (M-207).
fn auto_create(ctx: &Ctx, request: &MetadataRequest) -> AutoCreate {
    if ctx.config.topics.auto_create && request.allow_auto_topic_creation {
        AutoCreate::Allowed
    } else {
        AutoCreate::Forbidden
    }
}

/// The topics of these names, in their order; those that are to be made are there when this comes back (M-213).
async fn find(ctx: &Ctx, names: &[StrBytes], auto_create: AutoCreate) -> Vec<Result<Arc<Topic>, Refusal>> {
    let named = |catalog: &Catalog, auto_create| {
        let one = |name: &StrBytes| catalog.named(name, auto_create, ctx.broker.defaults());
        names.iter().map(one).collect::<Vec<_>>()
    };
    let first = named(&ctx.broker.catalog(), auto_create);
    let missing = names.iter().zip(&first).filter(|(_, found)| matches!(found, Ok(Named::Make(_))));
    let specs: Vec<CreateTopic> = missing.map(|(name, _)| CreateTopic::by_defaults(name)).collect();
    if specs.is_empty() {
        return first.into_iter().map(|found| found.and_then(existing)).collect();
    }
    let refused = make(ctx, specs).await;
    // Looked up again, for another client may have made the same topic a moment before, and that one serves as well.
    let mut now = named(&ctx.broker.catalog(), AutoCreate::Forbidden).into_iter();
    let again = names.iter().zip(first).map(|(name, before)| match (before, now.next()) {
        (Err(refusal), _) => Err(refusal),
        (Ok(_), Some(Ok(Named::Exists(topic)))) => Ok(topic),
        (Ok(_), _) => Err(refused.get(name.as_str()).copied().unwrap_or(Refusal::UnknownTopicOrPartition)),
    });
    again.collect()
}

fn existing(named: Named) -> Result<Arc<Topic>, Refusal> {
    match named {
        Named::Exists(topic) => Ok(topic),
        Named::Make(_) => Err(Refusal::UnknownTopicOrPartition),
    }
}

/// Makes topics, and says what those that were not made are told. A client that does not know better comes again for
/// all of these but the name that no topic can have.
async fn make(ctx: &Ctx, specs: Vec<CreateTopic>) -> BTreeMap<String, Refusal> {
    let names: Vec<String> = specs.iter().map(|spec| spec.name.clone()).collect();
    match ctx.broker.create_topics(specs).await {
        Ok(made) => {
            let no_room = made.iter().filter(|(_, result)| matches!(result, Err((Refusal::KafkaStorageError, _))));
            for (topic, _) in no_room {
                tracing::warn!(topic, "not made at its first use: too little room on the disk");
            }
            let refused = made.into_iter().filter_map(|(name, result)| result.err().map(|(why, _)| (name, told(why))));
            refused.collect()
        }
        Err(_stopping) => names.into_iter().map(|name| (name, Refusal::LeaderNotAvailable)).collect(),
    }
}

fn told(refusal: Refusal) -> Refusal {
    if refusal == Refusal::InvalidTopic { refusal } else { Refusal::UnknownTopicOrPartition }
}

/// M-208: the one broker leads every partition and is its only replica.
fn complete(topic: &Topic, node: BrokerId, epoch: i32) -> MetadataResponseTopic {
    let partition = |(index, _)| {
        MetadataResponsePartition::default()
            .with_partition_index(index)
            .with_leader_id(node)
            .with_leader_epoch(epoch)
            .with_replica_nodes(vec![node])
            .with_isr_nodes(vec![node])
    };
    MetadataResponseTopic::default()
        .with_name(Some(StrBytes::from_string(topic.name.as_str().to_owned()).into()))
        .with_topic_id(uuid::Uuid::from_bytes(topic.id.0))
        .with_is_internal(topic.is_internal())
        .with_partitions(topic.numbered_parts().map(partition).collect())
}

fn absent(name: StrBytes, code: i16) -> MetadataResponseTopic {
    MetadataResponseTopic::default().with_name(Some(name.into())).with_error_code(code)
}

//! CreateTopics (19).

use std::collections::BTreeMap;

use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::create_topics_response::{CreatableTopicConfigs, CreatableTopicResult};
use kafka_protocol::messages::{CreateTopicsRequest, CreateTopicsResponse};
use kafka_protocol::protocol::StrBytes;

use super::codes::Codes;
use super::service::Reply;
use super::{Call, Ctx};
use crate::engine::Refusal;
use crate::engine::catalog::{ConfigEntry, ConfigValue, CreateTopic, Defaults, Maker, TopicSettings};
use crate::runtime::post::CreatedTopic;

#[cfg(test)]
mod tests;

/// The first version whose answer says what became of the settings and counts (M-226).
const SHOWS_SETTINGS_SINCE: i16 = 5;

/// The only factor there is on one node, whatever was asked for (M-230).
const REPLICATION_FACTOR: i16 = 1;

/// The request's time-out plays no part: what is answered is there (M-228).
pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: CreateTopicsRequest = match call.decode() {
        Ok(request) => request,
        Err(close) => return close,
    };
    let specs: Vec<CreateTopic> = request.topics.iter().map(|topic| spec(topic, request.validate_only)).collect();
    let given = if call.version >= SHOWS_SETTINGS_SINCE { given(&specs) } else { BTreeMap::new() };
    let made = match ctx.broker.create_topics(specs).await {
        Ok(made) => made,
        Err(_stopping) => request.topics.iter().map(|topic| (topic.name.to_string(), Err(not_now()))).collect(),
    };
    let mut codes = Codes::new(ctx, call);
    let topics = made.into_iter().map(|(name, result)| match result {
        Ok(created) => success(created, given.get(&name).map_or(&[], Vec::as_slice), ctx.broker.defaults()),
        Err((refusal, message)) => failure(name, codes.of(Some(refusal)), message),
    });
    let response = CreateTopicsResponse::default().with_topics(topics.collect());
    call.encode(&response)
}

fn not_now() -> (Refusal, String) {
    // Coordinators mean nothing to an admin client; this code it knows, and it may ask again.
    (Refusal::RequestTimedOut, "The broker cannot create topics at present.".to_owned())
}

fn spec(topic: &CreatableTopic, validate_only: bool) -> CreateTopic {
    let brokers = |ids: &[kafka_protocol::messages::BrokerId]| ids.iter().map(|id| id.0).collect();
    CreateTopic {
        name: topic.name.to_string(),
        partitions: Some(topic.num_partitions),
        replication_factor: topic.replication_factor,
        assignments: topic.assignments.iter().map(|one| (one.partition_index, brokers(&one.broker_ids))).collect(),
        configs: (topic.configs.iter())
            .map(|config| (config.name.to_string(), config.value.as_ref().map(ToString::to_string)))
            .collect(),
        validate_only,
        by: Maker::Client,
    }
}

type Given = Vec<(String, Option<String>)>;

/// The settings asked for, by topic: those of a topic that is made are what it was given. No name that is made was
/// there twice.
fn given(specs: &[CreateTopic]) -> BTreeMap<String, Given> {
    specs.iter().map(|spec| (spec.name.clone(), spec.configs.clone())).collect()
}

/// M-226, M-227.
fn success(created: CreatedTopic, given: &[(String, Option<String>)], defaults: &Defaults) -> CreatableTopicResult {
    let settings = TopicSettings::of(given, &defaults.levels).unwrap_or_default();
    let configs = settings.describe(None, defaults).into_iter().map(config).collect();
    CreatableTopicResult::default()
        .with_name(StrBytes::from_string(created.name.as_str().to_owned()).into())
        .with_topic_id(uuid::Uuid::from_bytes(created.id.0))
        .with_error_message(None)
        .with_num_partitions(created.partitions)
        .with_replication_factor(REPLICATION_FACTOR)
        .with_configs(Some(configs))
}

fn config(entry: ConfigEntry) -> CreatableTopicConfigs {
    let (value, is_sensitive) = match entry.value {
        ConfigValue::Text(text) => (Some(StrBytes::from_string(text)), false),
        ConfigValue::Absent => (None, false),
        ConfigValue::Secret => (None, true),
    };
    CreatableTopicConfigs::default()
        .with_name(StrBytes::from_string(entry.name))
        .with_value(value)
        .with_read_only(entry.read_only)
        .with_config_source(entry.source.code())
        .with_is_sensitive(is_sensitive)
}

fn failure(name: String, code: i16, message: String) -> CreatableTopicResult {
    CreatableTopicResult::default()
        .with_name(StrBytes::from_string(name).into())
        .with_error_code(code)
        .with_error_message(Some(StrBytes::from_string(message)))
}

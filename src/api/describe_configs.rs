//! DescribeConfigs (32).

use std::collections::BTreeSet;

use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_protocol::messages::{DescribeConfigsRequest, DescribeConfigsResponse};
use kafka_protocol::protocol::StrBytes;

use super::codes::Codes;
use super::service::Reply;
use super::{Call, Ctx};
use crate::engine::Refusal;
use crate::engine::catalog::{ConfigEntry, ConfigValue, ResourceKind, Synonym};

#[cfg(test)]
mod tests;

pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: DescribeConfigsRequest = match call.decode() {
        Ok(request) => request,
        Err(close) => return close,
    };
    let all_known = request.resources.iter().all(|one| ResourceKind::from_code(one.resource_type).is_some());
    let catalog = ctx.broker.catalog();
    let mut codes = Codes::new(ctx, call);
    let mut results = Vec::new();
    for resource in distinct(&request.resources) {
        let described = match ResourceKind::from_code(resource.resource_type).filter(|_| all_known) {
            None => {
                Err((Refusal::InvalidRequest, "The request names a type of resource that there is not.".to_owned()))
            }
            Some(kind) => {
                let keys = keys(resource);
                let described = catalog.describe(kind, &resource.resource_name, keys.as_deref(), ctx.broker.defaults());
                described.map_err(|refused| (refused.refusal, refused.message))
            }
        };
        results.push(match described {
            Ok(entries) => success(resource, entries, &request),
            Err((refusal, message)) => failure(resource, codes.of(Some(refusal)), message),
        });
    }
    call.encode(&DescribeConfigsResponse::default().with_results(results))
}

/// Each resource once, in the order they first appear: an entry of a few bytes leads to an answer of many thousand.
fn distinct(resources: &[DescribeConfigsResource]) -> impl Iterator<Item = &DescribeConfigsResource> {
    let mut seen = BTreeSet::new();
    resources.iter().filter(move |one| seen.insert((one.resource_type, one.resource_name.as_str())))
}

fn keys(resource: &DescribeConfigsResource) -> Option<Vec<String>> {
    let keys = resource.configuration_keys.as_ref()?;
    Some(keys.iter().map(ToString::to_string).collect())
}

/// A type that has no field in the version is left out by the codec.
fn success(
    resource: &DescribeConfigsResource,
    entries: Vec<ConfigEntry>,
    request: &DescribeConfigsRequest,
) -> DescribeConfigsResult {
    let configs = entries.into_iter().map(|entry| shown(entry, request)).collect();
    echo(resource).with_error_message(None).with_configs(configs)
}

fn failure(resource: &DescribeConfigsResource, code: i16, message: String) -> DescribeConfigsResult {
    echo(resource).with_error_code(code).with_error_message(Some(StrBytes::from_string(message)))
}

fn echo(resource: &DescribeConfigsResource) -> DescribeConfigsResult {
    let result = DescribeConfigsResult::default().with_resource_type(resource.resource_type);
    result.with_resource_name(resource.resource_name.clone())
}

fn shown(entry: ConfigEntry, request: &DescribeConfigsRequest) -> DescribeConfigsResourceResult {
    let (value, is_sensitive) = match entry.value {
        ConfigValue::Text(text) => (Some(StrBytes::from_string(text)), false),
        ConfigValue::Absent => (None, false),
        ConfigValue::Secret => (None, true),
    };
    let synonyms =
        if request.include_synonyms { entry.synonyms.into_iter().map(synonym).collect() } else { Vec::new() };
    let documentation = entry.documentation.filter(|_| request.include_documentation);
    DescribeConfigsResourceResult::default()
        .with_name(StrBytes::from_string(entry.name))
        .with_value(value)
        .with_read_only(entry.read_only)
        .with_config_source(entry.source.code())
        .with_is_sensitive(is_sensitive)
        .with_synonyms(synonyms)
        .with_config_type(entry.kind.code())
        .with_documentation(documentation.map(|text| StrBytes::from_string(text.into_owned())))
}

fn synonym(synonym: Synonym) -> DescribeConfigsSynonym {
    DescribeConfigsSynonym::default()
        .with_name(StrBytes::from_string(synonym.name))
        .with_value(Some(StrBytes::from_string(synonym.value)))
        .with_source(synonym.source.code())
}

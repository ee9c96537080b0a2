//! IncrementalAlterConfigs (44): a resource's settings key by key.

use kafka_protocol::messages::incremental_alter_configs_request::AlterConfigsResource;
use kafka_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};

use super::alter_configs::{change, said};
use super::codes::Codes;
use super::service::Reply;
use super::{Call, Ctx};
use crate::engine::catalog::{Change, ChangeConfigs};

#[cfg(test)]
mod tests;

pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: IncrementalAlterConfigsRequest = match call.decode() {
        Ok(request) => request,
        Err(close) => return close,
    };
    let wanted = request.resources.iter().map(wanted).collect();
    let changed = change(ctx, wanted, request.validate_only).await;
    let mut codes = Codes::new(ctx, call);
    let responses = request.resources.into_iter().zip(changed).map(|(resource, changed)| {
        let (code, message) = said(changed, &mut codes);
        AlterConfigsResourceResponse::default()
            .with_error_code(code)
            .with_error_message(message)
            .with_resource_type(resource.resource_type)
            .with_resource_name(resource.resource_name)
    });
    call.encode(&IncrementalAlterConfigsResponse::default().with_responses(responses.collect()))
}

fn wanted(resource: &AlterConfigsResource) -> ChangeConfigs {
    let keys = resource.configs.iter().map(|config| {
        let value = config.value.as_ref().map(ToString::to_string);
        (config.name.to_string(), config.config_operation, value)
    });
    ChangeConfigs {
        kind: resource.resource_type,
        name: resource.resource_name.to_string(),
        change: Change::Keys(keys.collect()),
    }
}

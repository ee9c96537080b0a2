//! AlterConfigs (33): the complete new set of a resource's settings.

use kafka_protocol::messages::alter_configs_request::AlterConfigsResource;
use kafka_protocol::messages::alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{AlterConfigsRequest, AlterConfigsResponse};
use kafka_protocol::protocol::StrBytes;

use super::codes::Codes;
use super::service::Reply;
use super::{Call, Ctx};
use crate::engine::Refusal;
use crate::engine::catalog::{Change, ChangeConfigs};

#[cfg(test)]
mod tests;

pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: AlterConfigsRequest = match call.decode() {
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
    call.encode(&AlterConfigsResponse::default().with_responses(responses.collect()))
}

fn wanted(resource: &AlterConfigsResource) -> ChangeConfigs {
    let given = resource.configs.iter();
    let given = given.map(|config| (config.name.to_string(), config.value.as_ref().map(ToString::to_string)));
    ChangeConfigs {
        kind: resource.resource_type,
        name: resource.resource_name.to_string(),
        change: Change::All(given.collect()),
    }
}

/// What became of each resource, and what a person should read beside a refusal.
pub(super) type Outcome = Result<(), (Refusal, String)>;

/// Has these changes made, or only judged.
pub(super) async fn change(ctx: &Ctx, wanted: Vec<ChangeConfigs>, validate_only: bool) -> Vec<Outcome> {
    let count = wanted.len();
    match ctx.broker.change_configs(wanted, validate_only).await {
        Ok(changed) => {
            let reason = |changed: Result<_, crate::engine::catalog::Refused>| {
                changed.map_err(|refused| (refused.refusal, refused.message))
            };
            changed.into_iter().map(reason).collect()
        }
        // Coordinators mean nothing to an admin client; this code it knows, and it may ask again.
        Err(_stopping) => {
            let message = "The broker cannot change settings at present.".to_owned();
            vec![Err((Refusal::RequestTimedOut, message)); count]
        }
    }
}

/// Code and message for an answer.
pub(super) fn said(changed: Outcome, codes: &mut Codes<'_>) -> (i16, Option<StrBytes>) {
    match changed {
        Ok(()) => (codes.of(None), None),
        Err((refusal, message)) => (codes.of(Some(refusal)), Some(StrBytes::from_string(message))),
    }
}

//! ApiVersions (18): what is offered, in which versions.

use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};

use super::codes::Codes;
use super::service::Reply;
use super::{Call, Ctx};
use crate::engine::Refusal;
use crate::wire::Api;

#[cfg(test)]
mod tests;

/// The first version in which a client says which software it is (KIP-511).
const NAMES_SOFTWARE_SINCE: i16 = 3;

/// The list is the same for everyone (V-123) and names no features, so that clients keep to the classic transaction
/// protocol by themselves.
pub(super) async fn answer(ctx: &Ctx, call: &Call) -> Reply {
    let request: ApiVersionsRequest = match call.decode() {
        Ok(request) => request,
        Err(close) => return close,
    };
    let named = is_software_name(&request.client_software_name) && is_software_name(&request.client_software_version);
    if call.version >= NAMES_SOFTWARE_SINCE && !named {
        let mut codes = Codes::new(ctx, call);
        let code = codes.of(Some(Refusal::InvalidRequest));
        return call.encode(&ApiVersionsResponse::default().with_error_code(code));
    }
    call.encode(&ApiVersionsResponse::default().with_api_keys(offered()))
}

fn offered() -> Vec<ApiVersion> {
    let row = |api: &Api| {
        let versions = api.versions();
        let row = ApiVersion::default().with_api_key(api.key());
        row.with_min_version(versions.listed).with_max_version(versions.highest)
    };
    Api::ALL.iter().map(row).collect()
}

/// Letters and digits, with '.' and '-' between them (V-121). Such a text is safe in a log as it stands.
fn is_software_name(text: &str) -> bool {
    let (Some(first), Some(last)) = (text.bytes().next(), text.bytes().next_back()) else {
        return false;
    };
    let ends_well = first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric();
    ends_well && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
}

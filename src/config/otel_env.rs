//! The `OTEL_…` variables that say where traces go. The exporter itself reads the others, such as headers and timeouts.

use std::collections::BTreeMap;

use super::ConfigError;
use super::sources::{Origin, Said, entry};

/// A collector for traces alone: taken as it is.
const TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
/// A collector for everything: traces have a path of their own there.
const ALL: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// How the collector is spoken to, for traces alone or everything.
const PROTOCOLS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
/// The one way that is spoken here.
const SPOKEN: &str = "http/protobuf";

/// Adds what the variables say, unless they also say that nothing is to be traced.
pub(super) fn add(vars: &BTreeMap<String, String>, said: &mut Said) -> Result<(), ConfigError> {
    let set = |name: &str| vars.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
    let off = set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    if off || set("OTEL_TRACES_EXPORTER") == Some("none") {
        return Ok(());
    }
    let (name, endpoint) = match (set(TRACES), set(ALL)) {
        (Some(endpoint), _) => (TRACES, endpoint.to_owned()),
        (None, Some(endpoint)) => (ALL, format!("{}/v1/traces", endpoint.trim_end_matches('/'))),
        (None, None) => return Ok(()),
    };
    if let Some(protocol) = PROTOCOLS.into_iter().find_map(set).filter(|protocol| *protocol != SPOKEN) {
        said.notes.push(format!(
            "{protocol} is asked for, but traces are sent as {SPOKEN}: {name} must be a port that takes it, usually 4318"
        ));
    }
    said.entries.push(entry("tracing.endpoint", &endpoint, Origin::Env(name.to_owned()))?);
    Ok(())
}

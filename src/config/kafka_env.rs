//! The `KAFKA_…` variables people already have in their compose files, as far as they mean something here.

use std::collections::BTreeMap;

use super::ConfigError;
use super::sources::{Entry, Origin, Said, entry};

/// Variables that are one setting under another name.
const SAME: &[(&str, &str)] = &[
    ("KAFKA_AUTO_CREATE_TOPICS_ENABLE", "topics.auto_create"),
    ("KAFKA_CONNECTIONS_MAX_IDLE_MS", "net.idle_timeout_ms"),
    ("KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS", "groups.initial_rebalance_delay_ms"),
    ("KAFKA_GROUP_MAX_SESSION_TIMEOUT_MS", "groups.max_session_timeout_ms"),
    ("KAFKA_GROUP_MAX_SIZE", "groups.max_size"),
    ("KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS", "groups.min_session_timeout_ms"),
    ("KAFKA_LOG_DIR", "data_dir"),
    ("KAFKA_LOG_DIRS", "data_dir"),
    ("KAFKA_LOG_RETENTION_BYTES", "topics.retention_bytes"),
    ("KAFKA_LOG_RETENTION_CHECK_INTERVAL_MS", "topics.retention_check_interval_ms"),
    ("KAFKA_LOG_RETENTION_MS", "topics.retention_ms"),
    ("KAFKA_LOG_SEGMENT_BYTES", "topics.segment_bytes"),
    ("KAFKA_MAX_CONNECTIONS", "net.max_connections"),
    ("KAFKA_MESSAGE_MAX_BYTES", "topics.max_message_bytes"),
    ("KAFKA_NUM_PARTITIONS", "topics.default_partitions"),
    ("KAFKA_PRODUCER_ID_EXPIRATION_MS", "producers.id_expiration_ms"),
    ("KAFKA_SOCKET_REQUEST_MAX_BYTES", "net.max_request_bytes"),
    ("KAFKA_TRANSACTIONAL_ID_EXPIRATION_MS", "transactions.id_expiration_ms"),
    ("KAFKA_TRANSACTION_MAX_TIMEOUT_MS", "transactions.max_timeout_ms"),
];

const LISTENERS: &str = "KAFKA_LISTENERS";
const ADVERTISED: &str = "KAFKA_ADVERTISED_LISTENERS";
const PROTOCOLS: &str = "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP";
const BETWEEN_BROKERS: &str = "KAFKA_INTER_BROKER_LISTENER_NAME";
const CONTROLLERS: &str = "KAFKA_CONTROLLER_LISTENER_NAMES";
const ABOUT_LISTENERS: &[&str] = &[LISTENERS, ADVERTISED, PROTOCOLS, BETWEEN_BROKERS, CONTROLLERS];

type Vars = BTreeMap<String, String>;

/// Adds what the variables say; those without a meaning here are named in one note.
pub(super) fn add(vars: &Vars, said: &mut Said) -> Result<(), ConfigError> {
    let mut ignored = Vec::new();
    for (name, value) in vars.iter().filter(|(name, value)| name.starts_with("KAFKA_") && !value.is_empty()) {
        match SAME.iter().find(|(theirs, _)| theirs == name) {
            Some((_, "data_dir")) if value.contains(',') => {
                let instead = "write one directory: partitions are not spread over several";
                return Err(ConfigError(format!("{name} is {value:?}, a list: {instead}")));
            }
            Some((_, key)) => said.entries.push(entry(key, value, Origin::Env(name.clone()))?),
            None if ABOUT_LISTENERS.contains(&name.as_str()) || of_kubernetes(name) => {}
            None => ignored.push(name.as_str()),
        }
    }
    if !ignored.is_empty() {
        said.notes.push(format!("these variables have no meaning here and are ignored: {}", ignored.join(", ")));
    }
    said.entries.extend(doors(vars)?);
    Ok(())
}

/// What Kubernetes makes for a Service called kafka.
fn of_kubernetes(name: &str) -> bool {
    name == "KAFKA_PORT"
        || name.starts_with("KAFKA_PORT_")
        || name.starts_with("KAFKA_SERVICE_")
        || name.contains("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.contains("_PORT_")
}

/// One `NAME://host:port` of a listener list.
struct Door<'a> {
    name: &'a str,
    host: &'a str,
    port: &'a str,
}

/// Where Kafka knows any number of listeners by name, there are two here: the one that brokers would use among
/// themselves is the internal one, the other is the external one. Controllers' listeners have nobody to serve.
fn doors(vars: &Vars) -> Result<Vec<Entry>, ConfigError> {
    let open = read(vars, LISTENERS)?;
    let told = read(vars, ADVERTISED)?;
    let from_told = open.is_empty();
    let doors = if from_told { &told } else { &open };
    let internal = internal(vars, doors);
    let mut entries = Vec::new();
    let mut taken = BTreeMap::new();
    for door in doors {
        let ours = if internal == Some(door.name) { "internal" } else { "external" };
        if let Some(other) = taken.insert(ours, door.name) {
            let variable = if from_told { ADVERTISED } else { LISTENERS };
            return Err(ConfigError(format!(
                "{variable} names {other} and {} for clients: write two listeners at most, and name the one for \
                 containers in {BETWEEN_BROKERS}",
                door.name
            )));
        }
        let (host, from) = if from_told { ("0.0.0.0", ADVERTISED) } else { (door.host, LISTENERS) };
        let host = if host.is_empty() { "0.0.0.0" } else { host };
        let origin = Origin::Env(from.to_owned());
        entries.push(entry(&format!("listeners.{ours}.bind"), &format!("{host}:{}", door.port), origin)?);
        if let Some(told) = told.iter().find(|told| told.name == door.name) {
            let origin = Origin::Env(ADVERTISED.to_owned());
            let address = format!("{}:{}", told.host, told.port);
            entries.push(entry(&format!("listeners.{ours}.advertised"), &address, origin)?);
        }
    }
    if let Some(lost) = told.iter().find(|told| !doors.iter().any(|door| door.name == told.name)) {
        let name = lost.name;
        return Err(ConfigError(format!("{ADVERTISED} names {name}, {LISTENERS} does not: write {name} in both")));
    }
    Ok(entries)
}

/// The name of the listener that becomes the internal one. A single listener is the external one whatever its name.
fn internal<'a>(vars: &'a Vars, doors: &[Door<'a>]) -> Option<&'a str> {
    let between = vars.get(BETWEEN_BROKERS).map(String::as_str);
    let named = doors
        .iter()
        .map(|door| door.name)
        .find(|name| between.map_or_else(|| name.eq_ignore_ascii_case("internal"), |between| *name == between));
    match doors {
        [] | [_] => None,
        [_, second] => named.or(Some(second.name)),
        _ => named,
    }
}

fn read<'a>(vars: &'a Vars, variable: &str) -> Result<Vec<Door<'a>>, ConfigError> {
    let Some(list) = vars.get(variable) else {
        return Ok(Vec::new());
    };
    let controllers = vars.get(CONTROLLERS).map_or("CONTROLLER", String::as_str);
    let controllers = controllers.split(',').map(str::trim).collect::<Vec<_>>();
    let mut doors = Vec::new();
    for item in list.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let parts = item.split_once("://").and_then(|(name, rest)| Some((name, rest.rsplit_once(':')?)));
        let Some((name, (host, port))) = parts else {
            return Err(ConfigError(format!("{variable} holds {item:?}: write NAME://host:port")));
        };
        if !controllers.contains(&name) {
            plaintext(vars, variable, name)?;
            doors.push(Door { name, host, port });
        }
    }
    Ok(doors)
}

/// Refuses a listener that was meant to be encrypted or to ask for a password, rather than open it bare.
fn plaintext(vars: &Vars, variable: &str, name: &str) -> Result<(), ConfigError> {
    let map = vars.get(PROTOCOLS).map_or("", String::as_str);
    let mapped = map.split(',').filter_map(|pair| pair.trim().split_once(':')).find(|(mapped, _)| *mapped == name);
    let protocol = mapped.map_or(name, |(_, protocol)| protocol);
    if ["SSL", "SASL_SSL", "SASL_PLAINTEXT"].contains(&protocol) {
        let instead = "only PLAINTEXT listeners can be set with KAFKA_ variables";
        return Err(ConfigError(format!("{variable} asks for {protocol} on {name}: {instead}")));
    }
    Ok(())
}

//! From what the sources say to a configuration that holds.

use std::collections::BTreeMap;

use figment::Figment;
use figment::providers::Serialized;
use figment::value::Value;

use super::flags::Flags;
use super::settings::{Accepts, SETTINGS, Setting, Settings, find};
use super::sources::{Entry, Origin, Surroundings, gather};
use super::{Advertised, Config, ConfigError, Endpoint, HostPort, Listener, Listeners, Loaded, Ratio, Shown};

/// See [`Config::load`].
pub(super) fn load(flags: &Flags, around: &Surroundings) -> Result<Loaded, ConfigError> {
    let said = gather(flags, around)?;
    let mut figment = Figment::from(Serialized::defaults(Settings::default()));
    let mut winners = BTreeMap::new();
    for entry in said.entries {
        winners.insert(entry.key.clone(), entry);
    }
    for entry in winners.values() {
        if let Some(setting) = find(&entry.key) {
            check(setting, entry)?;
        }
        figment = figment.merge(Serialized::default(&entry.key, entry.value.clone()));
    }
    let settings = figment.extract::<Settings>().map_err(|error| ConfigError(error.to_string()))?;
    let listeners = doors(&settings, &winners, around)?;
    let config = settings.with_listeners(listeners);
    agree(&config, &winners)?;
    Ok(Loaded { values: shown(&figment, &winners), config, notes: said.notes })
}

/// Whether one value can be.
fn check(setting: &Setting, entry: &Entry) -> Result<(), ConfigError> {
    let value = &entry.value;
    let good = match setting.accepts {
        Accepts::Switch => value.to_bool().is_some(),
        Accepts::Number { min, max, .. } => {
            value.to_i128().is_some_and(|n| n >= i128::from(min) && n <= i128::from(max))
        }
        Accepts::Choice(words) => value.as_str().is_some_and(|word| words.contains(&word)),
        Accepts::Address => value.as_str().is_some_and(|text| text.parse::<HostPort>().is_ok()),
        Accepts::Advertised | Accepts::Directory => value.as_str().is_some_and(|text| !text.is_empty()),
        Accepts::Level => value.as_str().is_some_and(is_level),
        Accepts::Endpoint => value.as_str().is_some_and(|text| Endpoint::read(text).is_some()),
        Accepts::Ratio => Ratio::read(value).is_some(),
    };
    if good { Ok(()) } else { Err(refuse(entry, &wanted(setting.accepts))) }
}

/// A directive without `=` must be a level: the filter itself would take a misspelt one for the name of a module.
fn is_level(text: &str) -> bool {
    let plain = |word: &str| ["off", "error", "warn", "info", "debug", "trace"].contains(&word);
    let directive = |word: &str| word.split_once('=').map_or_else(|| plain(word), |(_, level)| plain(level));
    text.split(',').all(directive) && tracing_subscriber::EnvFilter::try_new(text).is_ok()
}

/// What may be written, as the end of a sentence that begins with "write".
fn wanted(accepts: Accepts) -> String {
    match accepts {
        Accepts::Switch => "true or false".to_owned(),
        Accepts::Number { unit, min, max: i64::MAX } => format!("a whole number of {unit}, {min} or more"),
        Accepts::Number { unit, min, max } => format!("a whole number of {unit} from {min} to {max}"),
        Accepts::Choice(words) => words.join(" or "),
        Accepts::Address => "an address with a port, such as 0.0.0.0:9092 or [::1]:9092".to_owned(),
        Accepts::Advertised => "a name clients can reach, such as broker.example.com:9092 or {hostname}".to_owned(),
        Accepts::Directory => "a directory".to_owned(),
        Accepts::Level => "error, warn, info, debug or trace, or directives like info,oncelog::net=debug".to_owned(),
        Accepts::Endpoint => "where to post traces, such as http://localhost:4318; https is not spoken".to_owned(),
        Accepts::Ratio => "a number from 0 to 1, such as 0.1".to_owned(),
    }
}

fn refuse(entry: &Entry, instead: &str) -> ConfigError {
    let Entry { key, value, origin } = entry;
    ConfigError(format!("{key} is {} ({origin}): write {instead}", quoted(value)))
}

/// The doors, with what each of them advertises.
fn doors(
    settings: &Settings,
    winners: &BTreeMap<String, Entry>,
    around: &Surroundings,
) -> Result<Listeners, ConfigError> {
    let told = |key: &str, template: Option<&String>, bind: &HostPort, fallback: &str| {
        let Some(template) = template else {
            return Ok(Advertised::automatic(bind, fallback));
        };
        let origin = winners.get(key).map_or(Origin::Default, |entry| entry.origin.clone());
        Advertised::resolve(template, around).map_err(|why| {
            let wanted = wanted(Accepts::Advertised);
            ConfigError(format!("{key} is {template:?} ({origin}), but {why}: write {wanted}"))
        })
    };
    let door = &settings.listeners.external;
    let key = "listeners.external.advertised";
    let advertised = told(key, door.advertised.as_ref(), &door.bind, "localhost")?;
    let external = Listener { bind: door.bind.clone(), advertised };
    let door = &settings.listeners.internal;
    let key = "listeners.internal.advertised";
    let internal = match &door.bind {
        Some(bind) => {
            let advertised = told(key, door.advertised.as_ref(), bind, &around.hostname)?;
            Some(Listener { bind: bind.clone(), advertised })
        }
        None if door.advertised.is_some() => {
            let why = "has no effect while the internal listener is off: write listeners.internal.bind as well";
            return Err(ConfigError(format!("{key} {why}, such as 0.0.0.0:29092")));
        }
        None => None,
    };
    Ok(Listeners { external, internal })
}

/// What the values must be to each other.
fn agree(config: &Config, winners: &BTreeMap<String, Entry>) -> Result<(), ConfigError> {
    let Config { groups, net, topics, .. } = config;
    let pairs = [
        (
            "groups.max_session_timeout_ms",
            groups.max_session_timeout_ms,
            "groups.min_session_timeout_ms",
            groups.min_session_timeout_ms,
        ),
        (
            "net.request_memory_bytes",
            wide(net.request_memory_bytes),
            "net.max_request_bytes",
            wide(net.max_request_bytes),
        ),
        ("net.max_request_bytes", wide(net.max_request_bytes), "topics.max_message_bytes", topics.max_message_bytes),
    ];
    for (upper, high, lower, low) in pairs {
        if high < low {
            let from = |key| winners.get(key).map_or(Origin::Default, |entry| entry.origin.clone());
            return Err(ConfigError(format!(
                "{upper} is {high} ({}), less than {lower}, {low} ({}): write {low} or more, or lower the other",
                from(upper),
                from(lower)
            )));
        }
    }
    apart(config)
}

/// No two doors may share an address, or the second could not open.
fn apart(config: &Config) -> Result<(), ConfigError> {
    let internal = config.listeners.internal.as_ref().map(|door| ("listeners.internal.bind", &door.bind));
    let first = [("listeners.external.bind", &config.listeners.external.bind), ("admin.bind", &config.admin.bind)];
    let all = first.into_iter().chain(internal).collect::<Vec<_>>();
    for (i, (key, bind)) in all.iter().enumerate() {
        for (other, taken) in all.iter().take(i) {
            if bind.port != 0 && bind.port == taken.port && (bind.host == taken.host || wild(bind) || wild(taken)) {
                return Err(ConfigError(format!("{key} is {bind}, but {other} is {taken}: write another port")));
            }
        }
    }
    Ok(())
}

fn wild(address: &HostPort) -> bool {
    address.local() != *address
}

fn wide(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

fn shown(figment: &Figment, winners: &BTreeMap<String, Entry>) -> Vec<Shown> {
    let line = |setting: &Setting| Shown {
        key: setting.key,
        value: figment.find_value(setting.key).map(|value| plain(&value)).unwrap_or_default(),
        origin: winners.get(setting.key).map_or(Origin::Default, |entry| entry.origin.clone()),
        meaning: setting.meaning,
    };
    SETTINGS.iter().map(line).collect()
}

/// A value as it is read back.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| quoted(value), str::to_owned)
}

/// A value as it stands in a sentence: text in quotes.
fn quoted(value: &Value) -> String {
    match value {
        Value::String(_, text) => format!("{text:?}"),
        Value::Char(_, letter) => format!("{letter:?}"),
        Value::Bool(_, on) => on.to_string(),
        Value::Num(_, number) => match whole(value) {
            Some(whole) => whole.to_string(),
            None => number.to_f64().map_or_else(String::new, |broken| broken.to_string()),
        },
        Value::Empty(..) => String::new(),
        Value::Dict(..) => "a table".to_owned(),
        Value::Array(..) => "a list".to_owned(),
    }
}

/// A whole number, signed or not.
fn whole(value: &Value) -> Option<i128> {
    value.to_i128().or_else(|| value.to_u128().and_then(|n| i128::try_from(n).ok()))
}

//! Where settings come from: each source becomes a list of entries, later ones over earlier ones.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use figment::Provider;
use figment::providers::{Format, Toml};
use figment::value::{Dict, Value};

use super::flags::Flags;
use super::settings::{Accepts, find, variable};
use super::{ConfigError, kafka_env, nearest, otel_env};

/// What the process finds around it, given by argument so that a test can bring its own.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The environment.
    pub vars: BTreeMap<String, String>,
    /// This machine's name.
    pub hostname: String,
    /// The working directory, where `oncelog.toml` is looked for.
    pub dir: PathBuf,
}

impl Surroundings {
    /// Those of this process. Variables that are not valid text are left out.
    #[must_use]
    pub fn of_process() -> Self {
        let vars = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let hostname = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { vars, hostname, dir: PathBuf::from(".") }
    }
}

/// Who said it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Nobody: it is built in.
    Default,
    /// A configuration file.
    File(PathBuf),
    /// An environment variable, by name.
    Env(String),
    /// The command line, as it was written there.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Env(name) => write!(f, "env {name}"),
            Self::Flag(text) => write!(f, "flag {text}"),
        }
    }
}

/// One setting as one source has it.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) value: Value,
    pub(super) origin: Origin,
}

/// Everything that was said, weakest first, and what should be remarked about it.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) entries: Vec<Entry>,
    pub(super) notes: Vec<String>,
}

/// Asks every source.
pub(super) fn gather(flags: &Flags, around: &Surroundings) -> Result<Said, ConfigError> {
    let mut said = Said::default();
    if let Some((path, text)) = file(flags, &around.dir)? {
        said.entries.extend(from_toml(&path, &text)?);
    }
    kafka_env::add(&around.vars, &mut said)?;
    otel_env::add(&around.vars, &mut said)?;
    from_env(&around.vars, &mut said)?;
    for (key, value, written) in &flags.set {
        said.entries.push(entry(key, value, Origin::Flag(written.clone()))?);
    }
    Ok(said)
}

/// The file that was asked for, or `oncelog.toml` where one lies.
fn file(flags: &Flags, dir: &Path) -> Result<Option<(PathBuf, String)>, ConfigError> {
    let path = flags.config.clone().unwrap_or_else(|| PathBuf::from("oncelog.toml"));
    match std::fs::read_to_string(dir.join(&path)) {
        Ok(text) => Ok(Some((path, text))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && flags.config.is_none() => Ok(None),
        Err(error) => Err(ConfigError(format!("cannot read the configuration file {}: {error}", path.display()))),
    }
}

fn from_toml(path: &Path, text: &str) -> Result<Vec<Entry>, ConfigError> {
    let wrong = |error: figment::Error| {
        let why = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        ConfigError(format!("{} is not valid TOML: {why}", path.display()))
    };
    let profiles = Toml::string(text).data().map_err(wrong)?;
    let mut leaves = Vec::new();
    for dict in profiles.into_values() {
        flatten("", dict, &mut leaves);
    }
    let origin = Origin::File(path.to_owned());
    leaves.into_iter().map(|(key, value)| known(Entry { key, value, origin: origin.clone() })).collect()
}

/// The leaves of nested tables, their names joined by dots.
fn flatten(prefix: &str, dict: Dict, leaves: &mut Vec<(String, Value)>) {
    for (name, value) in dict {
        let key = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
        match value {
            Value::Dict(_, inner) => flatten(&key, inner, leaves),
            Value::String(..)
            | Value::Char(..)
            | Value::Bool(..)
            | Value::Num(..)
            | Value::Empty(..)
            | Value::Array(..) => leaves.push((key, value)),
        }
    }
}

/// `ONCELOG_A__B` is `a.b`. A variable set to nothing counts as not set, so that `${NAME:-}` may stand in a compose file.
fn from_env(vars: &BTreeMap<String, String>, said: &mut Said) -> Result<(), ConfigError> {
    for (name, value) in vars {
        let Some(rest) = name.strip_prefix("ONCELOG_") else {
            continue;
        };
        if value.is_empty() || rest == "TOOLS" {
            continue;
        }
        if of_kubernetes(rest) {
            if rest.contains("__") {
                said.notes.push(format!("{name} looks like what Kubernetes sets for a Service and is ignored"));
            }
            continue;
        }
        let key = rest.to_lowercase().replace("__", ".");
        said.entries.push(entry(&key, value, Origin::Env(name.clone()))?);
    }
    Ok(())
}

/// Whether Kubernetes makes such a variable for a Service of our name; `rest` is what follows `ONCELOG_`. No setting
/// takes one of these shapes.
pub(super) fn of_kubernetes(rest: &str) -> bool {
    rest.starts_with("PORT") || rest.starts_with("SERVICE_") || rest.contains("_PORT") || rest.contains("_SERVICE_")
}

/// An entry of a source that knows nothing but text.
pub(super) fn entry(key: &str, text: &str, origin: Origin) -> Result<Entry, ConfigError> {
    let value = match find(key).map(|setting| setting.accepts) {
        Some(Accepts::Number { .. }) => text.trim().parse::<i64>().map_or_else(|_| Value::from(text), Value::from),
        Some(Accepts::Switch) => text.trim().parse::<bool>().map_or_else(|_| Value::from(text), Value::from),
        Some(Accepts::Ratio) => text.trim().parse::<f64>().map_or_else(|_| Value::from(text), Value::from),
        Some(
            Accepts::Choice(_)
            | Accepts::Address
            | Accepts::Advertised
            | Accepts::Directory
            | Accepts::Level
            | Accepts::Endpoint,
        )
        | None => Value::from(text),
    };
    known(Entry { key: key.to_owned(), value, origin })
}

/// Passes an entry on if its setting exists; else names the nearest that does.
fn known(entry: Entry) -> Result<Entry, ConfigError> {
    if find(&entry.key).is_some() {
        return Ok(entry);
    }
    let meant = nearest::setting(&entry.key);
    let (place, spelt): (String, fn(&str) -> String) = match &entry.origin {
        Origin::Env(name) => (format!("the environment variable {name}"), variable),
        Origin::File(path) => (format!("{:?} in {}", entry.key, path.display()), str::to_owned),
        Origin::Flag(_) | Origin::Default => (format!("{:?} on the command line", entry.key), str::to_owned),
    };
    let hint = meant.map_or_else(
        || "`oncelog config` lists every setting".to_owned(),
        |key| format!("did you mean {}?", spelt(key)),
    );
    Err(ConfigError(format!("{place} is not a setting: {hint}")))
}

//! Where traces go, and how many there are.

use std::fmt;

use figment::value::Value;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Traces of requests and transactions, sent to an OpenTelemetry collector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tracing {
    /// Where they are sent; nothing is traced while it is not set.
    pub endpoint: Option<Endpoint>,
    /// How many of them are kept; left to `OTEL_TRACES_SAMPLER` while it is not set.
    pub sample_ratio: Option<Ratio>,
}

/// The address traces are posted to, its path included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Endpoint(String);

impl Endpoint {
    /// Reads an address with its scheme. One without a path gets the path that collectors take traces at.
    pub(super) fn read(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("http://")?;
        let (authority, path) = rest.split_once('/').map_or((rest, ""), |(authority, path)| (authority, path));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            Some(_) | None => (authority, None),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
        let good = !host.is_empty()
            && host.chars().all(plain)
            && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
            && path.chars().all(|c| c.is_ascii_graphic());
        let path = if path.is_empty() { "v1/traces" } else { path };
        good.then(|| Self(format!("http://{authority}/{path}")))
    }

    /// The whole address.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Endpoint {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::read(&text).ok_or_else(|| serde::de::Error::custom("not an address with a scheme"))
    }
}

/// A share from 0, none, to 1, all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ratio {
    millionths: u32,
}

impl Ratio {
    /// A share as a number; `None` below 0 or above 1.
    pub(super) fn of(share: f64) -> Option<Self> {
        let within = (0.0..=1.0).contains(&share);
        let millionths = format!("{:.0}", share * 1_000_000.0).parse().ok().filter(|_| within)?;
        Some(Self { millionths })
    }

    /// What stands in a file, in the environment or on the command line.
    pub(super) fn read(value: &Value) -> Option<Self> {
        match value.to_i128() {
            Some(0) => Self::of(0.0),
            Some(1) => Self::of(1.0),
            Some(_) => None,
            None => value.to_f64().and_then(Self::of),
        }
    }

    /// The number.
    #[must_use]
    pub fn share(self) -> f64 {
        f64::from(self.millionths) / 1_000_000.0
    }
}

impl Serialize for Ratio {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(self.share())
    }
}

impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let share = f64::deserialize(from)?;
        Self::of(share).ok_or_else(|| serde::de::Error::custom("not a share from 0 to 1"))
    }
}

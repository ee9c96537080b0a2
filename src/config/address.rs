//! Addresses: where a door is, and where its clients are told to go.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::sources::Surroundings;

/// `host:port`, the host a name or a number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostPort {
    /// A name, or an address without brackets.
    pub host: String,
    /// The port; 0 where any free one will do.
    pub port: u16,
}

impl HostPort {
    /// Puts the two together.
    #[must_use]
    pub fn new(host: &str, port: u16) -> Self {
        Self { host: host.to_owned(), port }
    }

    /// The address to dial from this machine: a wildcard becomes loopback.
    #[must_use]
    pub fn local(&self) -> Self {
        match self.host.parse() {
            Ok(IpAddr::V4(ip)) if ip.is_unspecified() => Self::new("127.0.0.1", self.port),
            Ok(IpAddr::V6(ip)) if ip.is_unspecified() => Self::new("::1", self.port),
            Ok(_) | Err(_) => self.clone(),
        }
    }

    /// Whether it means the machine of whoever connects to it, whichever that is.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let host = self.host.to_ascii_lowercase();
        let named = host == "localhost" || host.ends_with(".localhost");
        named || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

impl FromStr for HostPort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (host, port) = split(text)?;
        let port = port.ok_or_else(|| format!("{text:?} names no port"))?;
        Ok(Self { host, port })
    }
}

impl TryFrom<String> for HostPort {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<HostPort> for String {
    fn from(address: HostPort) -> Self {
        address.to_string()
    }
}

/// Where the clients of a door are told to connect. Never a wildcard and never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advertised {
    /// A name, or an address without brackets.
    pub host: String,
    /// The port; `None` stands for the port the door is bound to.
    pub port: Option<u16>,
}

impl Advertised {
    /// The address as clients are told it, for a door that was bound to `bound_port`.
    #[must_use]
    pub fn at(&self, bound_port: u16) -> HostPort {
        HostPort::new(&self.host, self.port.unwrap_or(bound_port))
    }

    /// Reads `host` or `host:port` after its templates have been filled in.
    pub(super) fn resolve(template: &str, around: &Surroundings) -> Result<Self, String> {
        let text = expand(template, around)?;
        let (host, port) = split(&text)?;
        if host.parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified()) {
            return Err(format!("no client can connect to {host}"));
        }
        if port == Some(0) {
            return Err("no client can connect to port 0; leave the port out to advertise the bound one".to_owned());
        }
        Ok(Self { host, port })
    }

    /// What to advertise when nothing was said: the bound address itself if clients can use it, else `fallback`.
    pub(super) fn automatic(bind: &HostPort, fallback: &str) -> Self {
        let host = match bind.host.parse::<IpAddr>() {
            Ok(ip) if ip.is_unspecified() || ip.is_loopback() => fallback,
            Ok(_) | Err(_) => &bind.host,
        };
        Self { host: host.to_owned(), port: None }
    }
}

/// Host and port of `host`, `host:port`, `[v6]` or `[v6]:port`.
fn split(text: &str) -> Result<(String, Option<u16>), String> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or_else(|| format!("{text:?} has no closing bracket"))?;
            let port = if after.is_empty() { None } else { Some(after.strip_prefix(':').unwrap_or("?")) };
            (host, port)
        }
        None => match text.rsplit_once(':') {
            Some((host, _)) if host.contains(':') => return Err(format!("{text:?} needs brackets: [{text}]")),
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
    if host.is_empty() || !host.chars().all(fits) {
        return Err(format!("{text:?} names no host"));
    }
    let port = port.map(|port| port.parse::<u16>().map_err(|_| format!("{port:?} is no port"))).transpose()?;
    Ok((host.to_owned(), port))
}

const TEMPLATES: &str = "{hostname}, {pod_name}, {pod_ip}, {node_ip} and {ordinal}";

/// Fills in `{hostname}` and its like.
fn expand(template: &str, around: &Surroundings) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').ok_or("a { without its }")?;
        out.push_str(before);
        out.push_str(&filled(name, around)?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

fn filled(name: &str, around: &Surroundings) -> Result<String, String> {
    let variable = |name: &str| around.vars.get(name).filter(|value| !value.is_empty()).cloned();
    let needed = |var: &str| variable(var).ok_or_else(|| format!("{{{name}}} needs the environment variable {var}"));
    match name {
        "hostname" => Ok(around.hostname.clone()),
        "pod_name" => needed("POD_NAME"),
        "pod_ip" => needed("POD_IP"),
        "node_ip" => needed("NODE_IP"),
        "ordinal" => {
            let pod = variable("POD_NAME").unwrap_or_else(|| around.hostname.clone());
            let ordinal = pod.rsplit('-').next().filter(|last| last.parse::<u32>().is_ok());
            ordinal
                .map(str::to_owned)
                .ok_or_else(|| format!("{{ordinal}} needs a pod name like oncelog-0, not {pod:?}"))
        }
        _ => Err(format!("{{{name}}} is not known; {TEMPLATES} are")),
    }
}

//! Clients that come from elsewhere through a door whose clients are told to connect to their own machine.

use std::fs::read_to_string;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::config::{Config, HostPort, ListenerName};
use crate::metrics::Metrics;

/// Where Linux lists the routes of IPv4.
const ROUTES: &str = "/proc/net/route";

/// The doors that only clients of this machine can use.
pub(super) struct WrongDoor {
    doors: Vec<Door>,
    /// Who stands for this machine's own clients where the broker is in a container and its port is published.
    gateway: Option<IpAddr>,
}

struct Door {
    name: ListenerName,
    told: HostPort,
    /// One line for a door is enough.
    said: AtomicBool,
}

impl WrongDoor {
    /// The doors of this configuration that advertise a loopback name. `bound` names the port that each got.
    pub(super) fn new(config: &Config, bound: &[(ListenerName, u16)]) -> Self {
        let door = |(name, port): &(ListenerName, u16)| {
            let told = config.listener(*name)?.advertised.at(*port);
            told.is_loopback().then_some(Door { name: *name, told, said: AtomicBool::new(false) })
        };
        let routes = read_to_string(ROUTES).unwrap_or_default();
        Self { doors: bound.iter().filter_map(door).collect(), gateway: default_gateway(&routes).map(IpAddr::V4) }
    }

    /// Counts a client that is told a wrong address, and says once what to change.
    pub(super) fn judge(&self, listener: ListenerName, from: IpAddr, metrics: &Metrics) {
        let from = from.to_canonical();
        let Some(door) = self.doors.iter().find(|door| door.name == listener) else { return };
        if from.is_loopback() || self.gateway == Some(from) || is_own(from) {
            return;
        }
        metrics.wrong_door(listener);
        if !door.said.swap(true, Ordering::Relaxed) {
            let (name, told) = (listener.as_str(), &door.told);
            let setting = format!("ONCELOG_LISTENERS__{}__ADVERTISED", name.to_ascii_uppercase());
            tracing::warn!(
                listener = name,
                %from,
                "a client of another machine or container came through the {name} listener, which tells its clients to \
                 connect to {told}, their own machine: set {setting} (listeners.{name}.advertised) to an address that \
                 reaches this broker from there, or let clients in the same container network use the internal listener"
            );
        }
    }
}

/// Whether the address is one of this machine's: only those can be bound to.
fn is_own(ip: IpAddr) -> bool {
    UdpSocket::bind((ip, 0)).is_ok()
}

/// The gateway of the default route: destination and mask are 0. Addresses are written as this machine holds them in
/// memory.
fn default_gateway(routes: &str) -> Option<Ipv4Addr> {
    let gateway = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let (destination, gateway) = (fields.next()?, fields.next()?);
        let mask = fields.nth(4)?;
        let gateway = u32::from_str_radix(gateway, 16).ok()?;
        let is_default = destination == "00000000" && mask == "00000000" && gateway != 0;
        is_default.then(|| Ipv4Addr::from(gateway.to_ne_bytes()))
    };
    routes.lines().skip(1).find_map(gateway)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_route_names_the_gateway() {
        let head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";
        let gateway = u32::from_ne_bytes([172, 17, 0, 1]);
        let default = format!("eth0\t00000000\t{gateway:08X}\t0003\t0\t0\t0\t00000000\t0\t0\t0\n");
        let local = "eth0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n";
        for (routes, want) in [
            (format!("{head}{default}{local}"), Some(Ipv4Addr::new(172, 17, 0, 1))),
            (format!("{head}{local}{default}"), Some(Ipv4Addr::new(172, 17, 0, 1))),
            (format!("{head}{local}"), None),
            (head.to_owned(), None),
            (String::new(), None),
            ("a\nb c\n".to_owned(), None),
        ] {
            assert_eq!(default_gateway(&routes), want, "{routes}");
        }
    }

    #[test]
    fn only_strangers_at_a_door_for_friends_are_counted() {
        let metrics = |config: &Config| Metrics::new(config, &[]).unwrap();
        let mut config = Config::builtin();
        let count = |config: &Config, gateway: Option<&str>, from: &str| {
            let mut own = WrongDoor::new(config, &[(ListenerName::External, 9092)]);
            own.gateway = gateway.map(|ip| ip.parse().unwrap());
            let metrics = metrics(config);
            own.judge(ListenerName::External, from.parse().unwrap(), &metrics);
            let text = String::from_utf8(metrics.render().unwrap()).unwrap();
            text.contains("oncelog_wrong_door_connections_total{listener=\"external\"} 1")
        };
        assert!(count(&config, None, "203.0.113.7"));
        assert!(count(&config, Some("198.51.100.1"), "198.51.100.3"));
        assert!(count(&config, Some("198.51.100.1"), "::ffff:198.51.100.3"));
        assert!(!count(&config, Some("198.51.100.1"), "198.51.100.1"));
        assert!(!count(&config, None, "127.0.0.1"));
        assert!(!count(&config, None, "::1"));
        assert!(!count(&config, None, "::ffff:127.0.0.1"));
        config.listeners.external.advertised.host = "broker.example".to_owned();
        assert!(!count(&config, None, "203.0.113.7"));
    }
}

//! Hop by hop: name, address, connection, first answers, and the same again where clients are sent.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use kafka_protocol::messages::MetadataRequest;
use tokio::time::Instant;

use super::report::Report;
use crate::client::connection::Connection;
use crate::client::dial;
use crate::config::HostPort;
use crate::config::flags::Doctor;

/// How long one address may take to be connected to, or to answer.
const STEP: Duration = Duration::from_secs(5);

/// What has to be changed when clients are told a wrong address.
const SETTING: &str = "set ONCELOG_LISTENERS__EXTERNAL__ADVERTISED (for who comes through the internal listener \
                       ONCELOG_LISTENERS__INTERNAL__ADVERTISED) to an address that reaches the broker from here";

/// What a broker says of its cluster.
struct Heard {
    cluster: String,
    nodes: Vec<(i32, HostPort)>,
}

/// Where the way to an address ends.
enum Lost {
    /// Its name has no address.
    Name,
    /// Nobody listens, or nothing answers.
    Socket(String),
    /// Whoever answers is no broker.
    Stranger(String),
}

/// A node as a bootstrap address tells of it.
struct Told {
    via: HostPort,
    cluster: String,
}

/// Asks each bootstrap address, and then each address it sends clients to.
pub(super) async fn look(flags: &Doctor, report: &mut Report<'_>) {
    let mut told: BTreeMap<(i32, HostPort), Told> = BTreeMap::new();
    for at in &flags.bootstrap {
        report.heading(format!("bootstrap {at}"));
        match walk(at, report).await {
            Ok(heard) => listed(at, heard, &mut told, report),
            Err(lost) => report.wrong(short(&lost), bootstrap_lost(at, &lost)),
        }
    }
    for ((node, at), told) in &told {
        report.heading(format!("node {node}, advertised as {at}"));
        match walk(at, report).await {
            Ok(heard) => compare((*node, at), &heard, told, report),
            Err(lost) => report.wrong(short(&lost), advertised_lost(at, told, &lost)),
        }
    }
}

fn listed(at: &HostPort, heard: Heard, told: &mut BTreeMap<(i32, HostPort), Told>, report: &mut Report<'_>) {
    if let Some(other) = told.values().find(|other| other.cluster != heard.cluster) {
        let sentence = format!("{at} and {} belong to different clusters: name brokers of one", other.via);
        report.wrong(format!("it belongs to another cluster than {}", other.via), sentence);
    }
    report.ok(format!("cluster {}; clients are told:", heard.cluster));
    if heard.nodes.is_empty() {
        let sentence = format!("{at} answers, but knows of no broker: is it still starting?");
        report.wrong("no broker at all", sentence);
    }
    for (node, address) in heard.nodes {
        report.ok(format!("node {node} is at {address}"));
        told.entry((node, address)).or_insert(Told { via: at.clone(), cluster: heard.cluster.clone() });
    }
}

fn compare((node, at): (i32, &HostPort), heard: &Heard, told: &Told, report: &mut Report<'_>) {
    let Told { via, cluster } = told;
    let lead = format!("{via} answers, but tells clients to connect to {at}");
    if heard.cluster != *cluster {
        let own = if at.is_loopback() { ", which is each client's own machine," } else { "" };
        let sentence = format!("{lead}{own} where a broker of another cluster ({}) answers: {SETTING}", heard.cluster);
        report.wrong(format!("it belongs to cluster {}, not {cluster}", heard.cluster), sentence);
    } else if !heard.nodes.iter().any(|(other, _)| *other == node) {
        let sentence = format!("{lead} for node {node}, and who answers there knows no such node: {SETTING}");
        report.wrong(format!("it knows no node {node}"), sentence);
    } else {
        report.ok("the same cluster answers");
        if at.is_loopback() && !via.is_loopback() {
            report.note(format!("{at} is each client's own machine: clients on other machines are told the same"));
        }
    }
}

/// Goes the whole way to an address; of a name with several, one that answers is enough.
async fn walk(at: &HostPort, report: &mut Report<'_>) -> Result<Heard, Lost> {
    let addresses = dial::resolve(at, STEP).await.map_err(|_| Lost::Name)?;
    if at.host.parse::<IpAddr>().is_err() {
        let list: Vec<String> = addresses.iter().map(|address| address.ip().to_string()).collect();
        report.ok(format!("{} is {}", at.host, list.join(", ")));
    }
    let (mut first, mut lost) = (None, Vec::new());
    for address in addresses {
        let began = Instant::now();
        match hear(address).await {
            Ok(heard) => {
                report.ok(format!("{address} answers ({} ms)", began.elapsed().as_millis()));
                first.get_or_insert(heard);
            }
            Err(why) => lost.push((address, why)),
        }
    }
    let Some(heard) = first else {
        return Err(lost.pop().map_or(Lost::Name, |(_, why)| why));
    };
    for (address, why) in lost {
        report.note(format!("{address}: {}; clients try the other address", short(&why)));
    }
    Ok(heard)
}

async fn hear(address: SocketAddr) -> Result<Heard, Lost> {
    let stream = dial::connect(address, STEP).await.map_err(|error| Lost::Socket(unconnected(&error)))?;
    let stranger = |failure: crate::client::Failure| Lost::Stranger(failure.to_string());
    let mut connection = Connection::begin(stream, address, "oncelog-doctor", STEP).await.map_err(stranger)?;
    let request = MetadataRequest::default().with_topics(Some(Vec::new())).with_allow_auto_topic_creation(false);
    let answer = connection.call(4..=9, &request).await.map_err(stranger)?;
    let node = |host: &str, port: i32| HostPort::new(host, u16::try_from(port).unwrap_or(0));
    Ok(Heard {
        cluster: answer.cluster_id.map_or_else(|| "without an id".to_owned(), |id| id.to_string()),
        nodes: answer.brokers.iter().map(|own| (own.node_id.0, node(&own.host, own.port))).collect(),
    })
}

fn unconnected(error: &io::Error) -> String {
    let why = dial::unconnected(error);
    if error.kind() == io::ErrorKind::TimedOut { format!("{why} within {} s", STEP.as_secs()) } else { why }
}

fn short(lost: &Lost) -> String {
    match lost {
        Lost::Name => "the name cannot be resolved here".to_owned(),
        Lost::Socket(why) | Lost::Stranger(why) => why.clone(),
    }
}

fn bootstrap_lost(at: &HostPort, lost: &Lost) -> String {
    match lost {
        Lost::Name => {
            format!("{at}: the name cannot be resolved here: is it written right, and known in this network?")
        }
        Lost::Socket(why) => format!(
            "{at}: {why}: is the broker started, and does it listen there (ONCELOG_LISTENERS__EXTERNAL__BIND, or \
             ONCELOG_LISTENERS__INTERNAL__BIND)? 127.0.0.1 can be reached from the same machine or container only"
        ),
        Lost::Stranger(why) => format!("{at} is no Kafka listener: {why}"),
    }
}

fn advertised_lost(at: &HostPort, told: &Told, lost: &Lost) -> String {
    let lead = format!("{} answers, but tells clients to connect to {at}", told.via);
    let own = at.is_loopback() && !told.via.is_loopback();
    let own = if own { "which is each client's own machine, and " } else { "" };
    match lost {
        Lost::Name => format!("{lead}, whose name cannot be resolved here: {SETTING}"),
        Lost::Socket(why) => format!("{lead}, {own}where {}: {SETTING}", why.trim_end_matches(" there")),
        Lost::Stranger(why) => format!("{lead}, {own}where no broker answers ({why}): {SETTING}"),
    }
}

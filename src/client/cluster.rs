//! Who has to be asked: bootstrap, leaders of partitions, coordinators of groups and transactions.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{FindCoordinatorRequest, MetadataRequest, MetadataResponse};
use kafka_protocol::protocol::{Request, StrBytes};
use tokio::time::{Instant, sleep};

use super::connection::{Connection, named};
use super::{Failure, dial};
use crate::config::HostPort;

/// How long it is waited before something is asked again that may pass by itself.
const PAUSE: Duration = Duration::from_millis(20);

/// How long an address may take to be connected to.
const DIAL: Duration = Duration::from_secs(5);

/// One partition of a topic.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// Its topic.
    pub topic: Arc<str>,
    /// Its number.
    pub index: i32,
}

impl Part {
    /// That partition of that topic.
    #[must_use]
    pub fn new(topic: &str, index: i32) -> Self {
        Self { topic: Arc::from(topic), index }
    }
}

/// Who has to be asked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whom {
    /// Any broker.
    Anyone,
    /// The leader of a partition.
    Leader(Part),
    /// The coordinator of a group.
    Group(String),
    /// The coordinator of a transactional id.
    Transactions(String),
}

/// A client's view of a cluster, with at most one connection to each of its brokers.
pub struct Cluster {
    bootstrap: Vec<HostPort>,
    client_id: String,
    patience: Duration,
    nodes: BTreeMap<i32, HostPort>,
    found: BTreeMap<Whom, i32>,
    open: BTreeMap<i32, Connection>,
}

/// The node that stands for whichever bootstrap address answered.
const ANYONE: i32 = -1;

impl Cluster {
    /// Connects to the first of these addresses that answers. `patience` is how long any answer may take, and how
    /// long something is asked again that may pass by itself.
    ///
    /// # Errors
    /// Why none of them answers.
    pub async fn connect(bootstrap: &[HostPort], client_id: &str, patience: Duration) -> Result<Self, Failure> {
        let mut own = Self {
            bootstrap: bootstrap.to_vec(),
            client_id: client_id.to_owned(),
            patience,
            nodes: BTreeMap::new(),
            found: BTreeMap::new(),
            open: BTreeMap::new(),
        };
        own.connection(ANYONE).await?;
        Ok(own)
    }

    /// Asks whoever has to be asked. An error code in the answer is for the caller to see.
    ///
    /// # Errors
    /// Nobody to ask, no answer, or one that is none.
    pub async fn ask<R: Request>(
        &mut self,
        whom: &Whom,
        versions: RangeInclusive<i16>,
        request: &R,
    ) -> Result<R::Response, Failure> {
        let node = self.find(whom).await?;
        self.ask_node(node, versions, request).await
    }

    /// Asks until the answer's code is 0, as long as it is one that passes by itself.
    ///
    /// # Errors
    /// As [`Self::ask`], or refused for good, or for as long as the patience lasts.
    pub async fn insist<R: Request>(
        &mut self,
        whom: &Whom,
        (versions, request): (RangeInclusive<i16>, &R),
        code: impl Fn(&R::Response) -> i16,
    ) -> Result<R::Response, Failure> {
        let deadline = Instant::now() + self.patience;
        loop {
            let refusal = match self.ask(whom, versions.clone(), request).await {
                Ok(answer) => match code(&answer) {
                    0 => return Ok(answer),
                    code => Failure::Refused { what: named::<R>(), code },
                },
                Err(failure) => failure,
            };
            if !refusal.code().is_some_and(passes) || Instant::now() >= deadline {
                return Err(refusal);
            }
            self.forget(whom);
            sleep(PAUSE).await;
        }
    }

    pub(super) async fn ask_node<R: Request>(
        &mut self,
        node: i32,
        versions: RangeInclusive<i16>,
        request: &R,
    ) -> Result<R::Response, Failure> {
        let answered = self.connection(node).await?.call(versions, request).await;
        if answered.is_err() {
            self.open.remove(&node);
        }
        answered
    }

    /// What is known of the cluster and, if a topic is named, of its partitions.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub async fn metadata(&mut self, topic: Option<&str>) -> Result<MetadataResponse, Failure> {
        let named = |name: &str| MetadataRequestTopic::default().with_name(Some(text(name).into()));
        let request = MetadataRequest::default()
            .with_topics(Some(topic.map(named).into_iter().collect()))
            .with_allow_auto_topic_creation(false);
        let answer = self.ask_node(ANYONE, 4..=9, &request).await?;
        self.nodes = answer.brokers.iter().map(|node| (node.node_id.0, address(&node.host, node.port))).collect();
        Ok(answer)
    }

    /// The node that has to be asked, found if it is not known.
    pub(super) async fn find(&mut self, whom: &Whom) -> Result<i32, Failure> {
        if let Some(node) = self.found.get(whom) {
            return Ok(*node);
        }
        let node = match whom {
            Whom::Anyone => return Ok(ANYONE),
            Whom::Leader(part) => self.find_leader(part).await?,
            Whom::Group(id) => self.find_coordinator(id, 0).await?,
            Whom::Transactions(id) => self.find_coordinator(id, 1).await?,
        };
        self.found.insert(whom.clone(), node);
        Ok(node)
    }

    /// Finds out anew, next time, who has to be asked.
    pub(super) fn forget(&mut self, whom: &Whom) {
        self.found.remove(whom);
    }

    async fn find_leader(&mut self, part: &Part) -> Result<i32, Failure> {
        const WHAT: &str = "Metadata";
        let answer = self.metadata(Some(&part.topic)).await?;
        let topic = answer.topics.first().ok_or_else(|| Failure::foreign(WHAT, "the topic is left out"))?;
        let own = topic.partitions.iter().find(|own| own.partition_index == part.index);
        let code = match own {
            Some(own) if own.error_code == 0 && own.leader_id.0 >= 0 => return Ok(own.leader_id.0),
            Some(own) if own.error_code != 0 => own.error_code,
            Some(_) | None if topic.error_code != 0 => topic.error_code,
            Some(_) => LEADER_NOT_AVAILABLE,
            None => UNKNOWN_TOPIC_OR_PARTITION,
        };
        Err(Failure::Refused { what: WHAT, code })
    }

    async fn find_coordinator(&mut self, key: &str, kind: i8) -> Result<i32, Failure> {
        let request = FindCoordinatorRequest::default().with_key(text(key)).with_key_type(kind);
        let answer = self.ask_node(ANYONE, 1..=3, &request).await?;
        if answer.error_code != 0 {
            return Err(Failure::Refused { what: "FindCoordinator", code: answer.error_code });
        }
        self.nodes.insert(answer.node_id.0, address(&answer.host, answer.port));
        Ok(answer.node_id.0)
    }

    async fn connection(&mut self, node: i32) -> Result<&mut Connection, Failure> {
        if !self.open.contains_key(&node) {
            let connection = self.dial(node).await?;
            self.open.insert(node, connection);
        }
        self.open.get_mut(&node).ok_or_else(|| Failure::Unreachable("no connection".to_owned()))
    }

    async fn dial(&self, node: i32) -> Result<Connection, Failure> {
        let known = self.nodes.get(&node).map(std::slice::from_ref);
        let mut last = Failure::Unreachable(format!("the cluster does not say where node {node} is"));
        for at in known.unwrap_or(if node == ANYONE { &self.bootstrap } else { &[] }) {
            match self.dial_at(at).await {
                Ok(connection) => return Ok(connection),
                Err(failure) => last = failure,
            }
        }
        Err(last)
    }

    async fn dial_at(&self, at: &HostPort) -> Result<Connection, Failure> {
        let (address, stream) = dial::connect_to(at, DIAL.min(self.patience)).await?;
        Connection::begin(stream, address, &self.client_id, self.patience).await
    }
}

const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
const LEADER_NOT_AVAILABLE: i16 = 5;

/// Whether a refusal is one that passes by itself: leaders and coordinators that move or load, an earlier transaction
/// whose markers are still being written, offsets that wait for them, a broker that has no room yet.
const fn passes(code: i16) -> bool {
    matches!(code, UNKNOWN_TOPIC_OR_PARTITION | LEADER_NOT_AVAILABLE | 6 | 7 | 14 | 15 | 16 | 51 | 56 | 88)
}

fn address(host: &str, port: i32) -> HostPort {
    HostPort::new(host, u16::try_from(port).unwrap_or(0))
}

pub(super) fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

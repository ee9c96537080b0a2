//! Counts what happens at the edge.

use std::sync::Arc;
use std::time::Duration;

use crate::api::service::Peer;
use crate::config::ListenerName;
use crate::net::{End, Observer};
use crate::runtime::broker::Broker;
use crate::server::wrong_door::WrongDoor;
use crate::wire::Api;

/// Told by the edge.
pub(in crate::server) struct Watcher {
    broker: Arc<Broker>,
    wrong_door: WrongDoor,
}

impl Watcher {
    pub(in crate::server) fn new(broker: Arc<Broker>, wrong_door: WrongDoor) -> Self {
        Self { broker, wrong_door }
    }
}

fn door(peer: &Peer) -> ListenerName {
    if &*peer.listener == ListenerName::Internal.as_str() { ListenerName::Internal } else { ListenerName::External }
}

impl Observer for Watcher {
    fn opened(&self, peer: &Peer) {
        let metrics = self.broker.metrics();
        metrics.connection_opened(door(peer));
        self.wrong_door.judge(door(peer), peer.address.ip(), metrics);
    }

    fn closed(&self, peer: &Peer, _end: &End) {
        self.broker.metrics().connection_closed(door(peer));
    }

    fn queued(&self, waited: Duration) {
        self.broker.metrics().request_queued(waited);
    }

    fn answered(&self, api: Api, elapsed: Duration, _bytes: usize) {
        self.broker.metrics().request_answered(api.key(), elapsed);
    }
}

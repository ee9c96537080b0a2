//! What a handler may use, and the two ends of every translation.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use kafka_protocol::protocol::{Decodable, Encodable};

use super::service::{Incoming, Peer, Reply};
use super::traces::{Fact, Trace};
use crate::config::Config;
use crate::engine::{Refusal, TransactionalId};
use crate::runtime::broker::Broker;
use crate::wire::{Api, codes};

/// What a handler may use.
pub struct Ctx {
    /// The broker.
    pub broker: Arc<Broker>,
    /// The configuration.
    pub config: Arc<Config>,
    /// What each listener tells its clients to connect to, by listener name.
    pub advertised: Vec<(Arc<str>, String, u16)>,
}

/// One request on its way through a handler.
pub struct Call {
    /// What is asked.
    pub api: Api,
    /// In which version.
    pub version: i16,
    /// The client's name for itself.
    pub client_id: Option<String>,
    /// Who asks.
    pub peer: Arc<Peer>,
    /// The request's body; keeps the whole frame alive.
    pub body: Bytes,
    trace: Option<Arc<dyn Trace>>,
}

impl Call {
    /// A request from `peer`.
    #[must_use]
    pub fn new(peer: &Arc<Peer>, request: Incoming) -> Self {
        let Incoming { api, version, client_id, body, .. } = request;
        Self { api, version, client_id, peer: Arc::clone(peer), body, trace: None }
    }

    /// The same request, traced.
    #[must_use]
    pub fn traced(self, trace: Arc<dyn Trace>) -> Self {
        Self { trace: Some(trace), ..self }
    }

    /// Something is known of the request, if anybody wants to know.
    pub fn note(&self, fact: Fact<'_>) {
        if let Some(trace) = &self.trace {
            trace.note(fact);
        }
    }

    /// What it is answered.
    pub fn answered(&self, reply: &Reply) {
        if let Some(trace) = &self.trace {
            trace.answered(reply);
        }
    }

    /// The partitions that the request names, told while it is traced.
    pub fn note_places<'p>(&self, places: impl Iterator<Item = (&'p str, i32)>) {
        if self.trace.is_some() {
            places.for_each(|(topic, index)| self.note(Fact::Place { topic, index }));
        }
    }

    /// The client spoke for a transactional id; if it was heard, operators can be told who it is.
    pub(super) fn spoke_for(&self, ctx: &Ctx, id: &TransactionalId, was_heard: bool) {
        if was_heard {
            ctx.broker.note_caller(id, (self.client_id.as_deref(), self.peer.address));
        }
    }

    /// The request's message. The guard has passed it; what the codec still refuses closes the connection.
    ///
    /// # Errors
    /// The reply that closes the connection.
    pub fn decode<M: Decodable>(&self) -> Result<M, Reply> {
        let mut body = self.body.clone();
        M::decode(&mut body, self.version).map_err(|error| Reply::Close(format!("cannot be decoded: {error}").into()))
    }

    /// The answer.
    #[must_use]
    pub fn encode<M: Encodable>(&self, message: &M) -> Reply {
        let mut body = BytesMut::new();
        match message.encode(&mut body, self.version) {
            Ok(()) => Reply::Answer(vec![body.freeze()]),
            Err(error) => Reply::Close(format!("answer cannot be encoded: {error}").into()),
        }
    }

    /// What a refusal is called in this API and version.
    #[must_use]
    pub fn code(&self, refusal: Refusal) -> i16 {
        codes::code_for(self.api, self.version, refusal)
    }
}

impl Ctx {
    /// Host and port that a client of this listener is to connect to.
    #[must_use]
    pub fn address_for(&self, listener: &str) -> (&str, u16) {
        let own = self.advertised.iter().find(|(name, ..)| &**name == listener).or(self.advertised.first());
        own.map_or(("localhost", 9092), |(_, host, port)| (host, *port))
    }
}

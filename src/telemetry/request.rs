//! Spans of requests.

use std::sync::Arc;

use opentelemetry::trace::{SpanContext, Status, TraceContextExt};
use opentelemetry_sdk::trace::SdkTracer;
use parking_lot::Mutex;
use tracing::{Instrument, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::SENT;
use super::export::Counts;
use super::traceparent;
use super::transactions::Transactions;
use crate::api::service::{Incoming, Peer, Pending, Reply};
use crate::api::traces::{self as api, Fact, Trace};
use crate::engine::batch::Header;
use crate::engine::{Producer, Refusal, TransactionalId};
use crate::runtime::tracks::{Moment, Tracks};

/// Longest text of a client that is passed on, in characters: a name of a topic has 249 at most.
const TEXT_CHARS: usize = 256;

/// Keeps traces of requests and of transactions, and knows which belong together.
pub struct Traces {
    transactions: Arc<Transactions>,
    counts: Arc<Counts>,
}

impl Traces {
    pub(super) fn new(tracer: SdkTracer, counts: Arc<Counts>) -> Self {
        Self { transactions: Arc::new(Transactions::new(tracer, Arc::clone(&counts))), counts }
    }

    /// Spans that were lost since this was asked last: there was no room for them, or nobody took them.
    #[must_use]
    pub fn take_dropped(&self) -> u64 {
        self.counts.take_dropped()
    }

    /// Nothing more will be told: what is open is sent as it stands.
    pub(super) fn stop(&self) {
        self.transactions.stop();
    }
}

impl Tracks for Traces {
    fn note(&self, moment: &Moment<'_>) {
        self.transactions.note(moment);
    }

    fn follows(&self, number: u64) -> bool {
        self.transactions.follows(number)
    }

    fn trace_id(&self, id: &TransactionalId) -> Option<String> {
        self.transactions.context(id).map(|context| context.trace_id().to_string())
    }
}

/// A span of the broker's own work, such as a start; what happens in it belongs to it.
#[must_use]
pub fn stage(name: &'static str) -> Span {
    tracing::info_span!(target: SENT, "stage", otel.name = name)
}

impl api::Traces for Traces {
    fn request(&self, peer: &Peer, request: &Incoming) -> Option<Arc<dyn Trace>> {
        let api = request.api.name();
        let span = tracing::info_span!(target: SENT, parent: None, "request", otel.name = api, otel.kind = "server");
        let context = span.context().span().span_context().clone();
        if !context.is_sampled() {
            return None;
        }
        let shown = tracing::error_span!(parent: None, "request", api, trace_id = %context.trace_id());
        span.set_attribute("messaging.system", "kafka");
        span.set_attribute("kafka.api_version", i64::from(request.version));
        span.set_attribute("kafka.correlation_id", i64::from(request.correlation_id));
        span.set_attribute("network.peer.address", peer.address.ip().to_string());
        span.set_attribute("network.peer.port", i64::from(peer.address.port()));
        span.set_attribute("server.port", i64::from(peer.local_port));
        if let Some(client_id) = &request.client_id {
            span.set_attribute("messaging.client.id", shorten(client_id));
        }
        let known = Mutex::new(Known::default());
        let transactions = Arc::clone(&self.transactions);
        Some(Arc::new(Request { span, shown, context, transactions, known }))
    }
}

/// One request that is traced.
struct Request {
    span: Span,
    /// What lines of the log show of it.
    shown: Span,
    context: SpanContext,
    transactions: Arc<Transactions>,
    known: Mutex<Known>,
}

/// What is known of a request so far.
#[derive(Default)]
struct Known {
    id: Option<TransactionalId>,
    /// The transaction that it points to.
    linked: Option<SpanContext>,
    topics: Topics,
    /// How many partitions it names, and the index of the last one.
    places: (i64, i32),
    messages: Option<i64>,
    refused: Option<Refusal>,
    answered: bool,
}

/// Which topics a request names.
#[derive(Default)]
enum Topics {
    #[default]
    None,
    One(String),
    Several,
}

impl Trace for Request {
    fn follow(&self, work: Pending) -> Pending {
        Box::pin(work.instrument(self.shown.clone()).instrument(self.span.clone()))
    }

    fn note(&self, fact: Fact<'_>) {
        match fact {
            Fact::Transaction(id) => self.note_transaction(id),
            Fact::Producer(producer) => self.note_producer(producer),
            Fact::Place { topic, index } => self.known.lock().note_place(topic, index),
            Fact::Batch { header, bytes } => self.note_batch(header, bytes),
            Fact::Refused(refusal) => {
                let mut known = self.known.lock();
                known.refused = known.refused.or(Some(refusal));
            }
        }
    }

    fn answered(&self, reply: &Reply) {
        self.known.lock().answered = true;
        if let Reply::Close(why) = reply {
            self.span.set_status(Status::error(why.clone()));
        }
    }
}

impl Request {
    fn note_transaction(&self, id: &str) {
        self.span.set_attribute("kafka.transactional_id", shorten(id));
        let id = TransactionalId::from(id);
        let linked = self.link(&id);
        let mut known = self.known.lock();
        known.linked = linked;
        known.id = Some(id);
    }

    /// Points to the id's transaction, if there is one that is followed.
    fn link(&self, id: &TransactionalId) -> Option<SpanContext> {
        let context = self.transactions.context(id)?;
        self.span.add_link(context.clone());
        Some(context)
    }

    fn note_producer(&self, producer: Producer) {
        self.span.set_attribute("kafka.producer_id", producer.id);
        self.span.set_attribute("kafka.producer_epoch", i64::from(producer.epoch));
    }

    fn note_batch(&self, header: &Header, bytes: &[u8]) {
        let contexts = traceparent::of_batch(bytes);
        for context in &contexts {
            self.span.add_link(context.clone());
        }
        let mut known = self.known.lock();
        let first = known.messages.is_none();
        known.messages = Some(known.messages.unwrap_or(0).saturating_add(i64::from(header.count)));
        if let Some(id) = known.id.as_ref().filter(|_| header.is_transactional()) {
            self.transactions.produced(id, first.then_some(&self.context), contexts);
        }
        drop(known);
        if let Some(producer) = header.producer().filter(|_| first) {
            self.note_producer(producer);
        }
    }
}

impl Known {
    fn note_place(&mut self, topic: &str, index: i32) {
        self.places = (self.places.0.saturating_add(1), index);
        match &self.topics {
            Topics::None => self.topics = Topics::One(topic.to_owned()),
            Topics::One(first) if first == topic => {}
            Topics::One(_) | Topics::Several => self.topics = Topics::Several,
        }
    }
}

impl Drop for Request {
    /// The end: what only now is known, or counted, of the request.
    fn drop(&mut self) {
        let known = std::mem::take(self.known.get_mut());
        if let Some(id) = known.id.filter(|_| known.linked.is_none()) {
            // The request that began the transaction could not point to it before.
            drop(self.link(&id));
        }
        let (places, index) = known.places;
        if places > 0 {
            self.span.set_attribute("kafka.partitions", places);
        }
        if places == 1 {
            self.span.set_attribute("messaging.destination.partition.id", index.to_string());
        }
        if let Topics::One(topic) = known.topics {
            self.span.set_attribute("messaging.destination.name", shorten(&topic));
        }
        if let Some(messages) = known.messages {
            self.span.set_attribute("messaging.batch.message_count", messages);
        }
        if let Some(refusal) = known.refused {
            self.span.set_attribute("error.type", crate::wire::codes::name(refusal));
            self.span.set_status(Status::error(refusal.to_string()));
        }
        if !known.answered {
            self.span.set_attribute("kafka.answered", false);
        }
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(TEXT_CHARS).collect()
}

//! librdkafka's producer, whose reports go into the history.

use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::Message;
use rdkafka::error::KafkaError;
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseRecord, Producer as _, ProducerContext, ThreadedProducer};
use rdkafka::types::RDKafkaErrorCode;

use super::{Run, TRANSACTION_TIMEOUT_MS};
use crate::dice::Dice;
use crate::history::{Part, Value};
use crate::librdkafka::{self, CALL, Stop, settle};

/// Writes down what is acknowledged. Reports come on a thread of the producer's, and the history outlives it: it is
/// handed over when asked for.
#[derive(Default)]
pub(super) struct Reports {
    acknowledged: parking_lot::Mutex<Vec<(Value, i64)>>,
    /// An idempotent producer that cannot go on says so here.
    fatal: std::sync::atomic::AtomicBool,
}

impl ClientContext for Reports {
    fn error(&self, error: KafkaError, _: &str) {
        if matches!(error, KafkaError::Global(RDKafkaErrorCode::Fatal)) {
            self.fatal.store(true, std::sync::atomic::Ordering::Release);
        }
    }
}

impl ProducerContext for Reports {
    type DeliveryOpaque = Box<Value>;

    fn delivery(&self, result: &DeliveryResult<'_>, value: Box<Value>) {
        if let Ok(message) = result {
            self.acknowledged.lock().push((*value, message.offset()));
        }
    }
}

/// How many requests of a plain idempotent producer may be under way at a time.
///
/// With several of them librdkafka answers a refused batch, and the gap that the batch behind it then leaves, with a new
/// epoch, under which it sends again whatever it has no answer to, of any partition. If the connection ends at that
/// moment, as it does when a broker without room is killed, it stores twice what was stored already; no broker can
/// tell. Where single batches are refused, it has therefore one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InFlight {
    One,
    Five,
}

/// A producer and what it has to say.
pub(super) struct Producer {
    pub(super) client: ThreadedProducer<Reports>,
}

impl Producer {
    /// Merely idempotent.
    pub(super) fn plain(run: &Run, in_flight: InFlight) -> Self {
        let mut config = librdkafka::client(&run.bootstrap());
        let in_flight = match in_flight {
            InFlight::One => "1",
            InFlight::Five => "5",
        };
        config
            .set("linger.ms", "1")
            .set("enable.idempotence", "true")
            .set("max.in.flight.requests.per.connection", in_flight)
            .set("message.timeout.ms", "12000");
        Self { client: config.create_with_context(Reports::default()).unwrap() }
    }

    /// A producer that owns the id from here on.
    pub(super) fn owner(run: &Run, id: &str) -> Result<Self, Stop> {
        let mut config = librdkafka::client(&run.bootstrap());
        config
            .set("linger.ms", "1")
            .set("transactional.id", id)
            .set("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS.to_string())
            .set("message.timeout.ms", TRANSACTION_TIMEOUT_MS.to_string());
        let producer = Self { client: config.create_with_context(Reports::default()).unwrap() };
        settle(|| producer.client.init_transactions(CALL)).map(|()| producer)
    }

    /// Sends a new record of the attempt.
    pub(super) fn send(
        &self,
        run: &Run,
        (attempt, part, source): (usize, Part, Option<(i32, i64)>),
        dice: &mut Dice,
    ) -> Result<(), Stop> {
        let value = run.history.lock().write(attempt, part, source);
        let payload = format!("{value} {}", dice.padding());
        let record = BaseRecord::<(), String, Box<Value>>::with_opaque_to(part.topic.name(), Box::new(value));
        let sent = self.client.send(record.partition(part.number).payload(&payload));
        sent.map_err(|(error, _)| Stop::Abort(error))
    }

    /// Waits until each record is acknowledged or given up, at most so long.
    pub(super) fn flush(&self, run: &Run, at_most: Duration) {
        let began = crate::child::now();
        while self.client.in_flight_count() > 0 && began.elapsed() < at_most {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.report(run);
    }

    /// Tells the history what has been acknowledged.
    pub(super) fn report(&self, run: &Run) {
        let acknowledged = std::mem::take(&mut *self.client.context().acknowledged.lock());
        let mut history = run.history.lock();
        for (value, offset) in acknowledged {
            history.acknowledged(value, (offset >= 0).then_some(offset));
        }
    }

    /// Whether it is of no more use.
    pub(super) fn is_fatal(&self) -> bool {
        self.client.context().fatal.load(std::sync::atomic::Ordering::Acquire)
            || self.client.client().fatal_error().is_some()
    }

    pub(super) fn commit(&self, run: &Run) -> Result<(), Stop> {
        let ended = settle(|| self.client.commit_transaction(CALL));
        self.report(run);
        ended
    }

    pub(super) fn abort(&self, run: &Run) -> Result<(), Stop> {
        let ended = settle(|| self.client.abort_transaction(CALL));
        self.report(run);
        ended
    }
}

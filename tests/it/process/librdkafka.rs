//! librdkafka's clients, with the settings these tests need.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseProducer, Producer as _, ProducerContext};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{ClientConfig, ClientContext, Message, Offset, TopicPartitionList};

use super::child::{PATIENCE, now};

pub(crate) type Producer = BaseProducer<Deliveries>;

/// Counts the records that were given up.
#[derive(Default)]
pub(crate) struct Deliveries {
    failed: AtomicUsize,
}

impl Deliveries {
    pub(crate) fn failed(&self) -> usize {
        self.failed.load(Ordering::Acquire)
    }
}

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if result.is_err() {
            self.failed.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// How long one call may take before it is made again.
pub(crate) const CALL: Duration = Duration::from_secs(5);

/// What comes of a transactional call in the end.
#[derive(Debug, Clone)]
pub(crate) enum Stop {
    /// The transaction must be aborted.
    Abort(KafkaError),
    /// The producer is of no more use.
    StartOver(KafkaError),
}

impl Stop {
    pub(crate) fn error(&self) -> &KafkaError {
        match self {
            Self::Abort(error) | Self::StartOver(error) => error,
        }
    }
}

/// What all clients have in common: a broker that was away is found again at once.
pub(crate) fn client(bootstrap: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", bootstrap)
        .set("reconnect.backoff.ms", "10")
        .set("reconnect.backoff.max.ms", "100")
        .set("retry.backoff.ms", "20")
        .set("log_level", "2");
    config
}

/// A producer with this transactional id.
pub(crate) fn producer(bootstrap: &str, id: &str) -> Producer {
    let mut config = client(bootstrap);
    config.set("transactional.id", id).set("transaction.timeout.ms", "60000").set("linger.ms", "0");
    config.create_with_context(Deliveries::default()).unwrap()
}

/// A consumer that is given its partitions by hand; its group is where offsets are looked up.
pub(crate) fn consumer(bootstrap: &str, group: &str, isolation: &str) -> BaseConsumer {
    let mut config = client(bootstrap);
    config
        .set("group.id", group)
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("auto.offset.reset", "error")
        .set("fetch.wait.max.ms", "20")
        .set("isolation.level", isolation);
    config.create().unwrap()
}

/// Makes a transactional call until it has an outcome, as librdkafka's manual says.
pub(crate) fn settle(call: impl Fn() -> KafkaResult<()>) -> Result<(), Stop> {
    let began = now();
    loop {
        let Err(error) = call() else { return Ok(()) };
        let KafkaError::Transaction(inner) = &error else { return Err(Stop::StartOver(error)) };
        if inner.is_fatal() {
            return Err(Stop::StartOver(error));
        }
        if inner.txn_requires_abort() {
            return Err(Stop::Abort(error));
        }
        if !inner.is_retriable() {
            return Err(Stop::StartOver(error));
        }
        assert!(began.elapsed() < PATIENCE, "no outcome within {PATIENCE:?}: {error}");
    }
}

/// Waits until every record has been acknowledged or given up. The client's own `flush` looks ten times a second.
pub(crate) fn flush(producer: &Producer) {
    let began = now();
    while producer.in_flight_count() > 0 {
        producer.poll(Duration::from_millis(1));
        assert!(began.elapsed() < PATIENCE, "records are neither acknowledged nor given up");
    }
}

/// Aborts, serving the reports of what is thrown away meanwhile: the call waits for them and does not serve them itself.
pub(crate) fn abort(producer: &Producer) -> Result<(), Stop> {
    settle(|| {
        producer.poll(Duration::ZERO);
        producer.abort_transaction(Duration::from_millis(200))
    })
}

/// Asks until there is an answer: the broker may be away.
pub(crate) fn again<T>(what: &str, ask: impl Fn() -> KafkaResult<T>) -> T {
    let began = now();
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(error) => assert!(began.elapsed() < PATIENCE, "{what}: {error}"),
        }
    }
}

/// The committed offsets of a group in partitions 0, 1, … of a topic; 0 where there is none.
pub(crate) fn committed(consumer: &BaseConsumer, topic: &str, partitions: i32) -> Vec<i64> {
    let mut asked = TopicPartitionList::new();
    for partition in 0..partitions {
        asked.add_partition(topic, partition);
    }
    let found = again("committed offsets", || {
        let found = consumer.committed_offsets(asked.clone(), CALL)?;
        found.elements().iter().try_for_each(|element| element.error())?;
        Ok(found)
    });
    let offset = |partition| match found.find_partition(topic, partition).unwrap().offset() {
        Offset::Offset(offset) => offset,
        Offset::Invalid => 0,
        other @ (Offset::Beginning | Offset::End | Offset::Stored | Offset::OffsetTail(_)) => panic!("{other:?}"),
    };
    (0..partitions).map(offset).collect()
}

/// Everything these partitions show, by partition, from the start to the end.
pub(crate) fn read(bootstrap: &str, topic: &str, partitions: i32, isolation: &str) -> Vec<Vec<String>> {
    let consumer = consumer(bootstrap, "nobody", isolation);
    let mut from_start = TopicPartitionList::new();
    for partition in 0..partitions {
        from_start.add_partition_offset(topic, partition, Offset::Beginning).unwrap();
    }
    consumer.assign(&from_start).unwrap();
    let mut values = vec![Vec::new(); usize::try_from(partitions).unwrap()];
    let (mut open, began) = (partitions, now());
    while open > 0 {
        match consumer.poll(CALL) {
            Some(Ok(message)) => {
                let value = String::from_utf8(message.payload().unwrap().to_vec()).unwrap();
                values[usize::try_from(message.partition()).unwrap()].push(value);
            }
            Some(Err(KafkaError::PartitionEOF(_))) => open -= 1,
            Some(Err(error)) => assert!(is_passing(&error), "reading {topic}: {error}"),
            None => {}
        }
        assert!(began.elapsed() < PATIENCE, "{topic}: the end is not reached");
    }
    values
}

/// Whether it says no more than that the broker is away.
pub(crate) fn is_passing(error: &KafkaError) -> bool {
    let KafkaError::MessageConsumption(code) = error else { return false };
    matches!(
        code,
        RDKafkaErrorCode::BrokerTransportFailure
            | RDKafkaErrorCode::AllBrokersDown
            | RDKafkaErrorCode::OperationTimedOut
    )
}

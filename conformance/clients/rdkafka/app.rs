//! What every scenario works with.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{Consumer, StreamConsumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{FutureProducer, FutureRecord, Producer as _};
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};

/// Why a scenario has failed.
pub(crate) type Wrong = Box<dyn std::error::Error>;
/// Figures of a scenario that went as it must.
pub(crate) type Outcome = Result<String, Wrong>;
/// What was read, a list for each partition.
pub(crate) type Read = Result<Vec<Vec<String>>, Wrong>;

pub(crate) const WAIT: Duration = Duration::from_secs(30);
pub(crate) const COMMITTED: &str = "read_committed";
pub(crate) const ALL: &str = "read_uncommitted";

pub(crate) struct App {
    bootstrap: String,
    prefix: String,
    pub(crate) admin: AdminClient<DefaultClientContext>,
}

pub(crate) fn expect<T: PartialEq + Debug>(what: &str, seen: &T, wanted: &T) -> Result<(), Wrong> {
    if seen == wanted {
        return Ok(());
    }
    let short = |value: &T| format!("{value:?}").chars().take(300).collect::<String>();
    Err(format!("{what}: {} instead of {}", short(seen), short(wanted)).into())
}

/// Looks until it sees what it should: Kafka's controller answers before all of the broker knows.
pub(crate) async fn eventually<T: PartialEq + Debug>(
    what: &str,
    mut look: impl AsyncFnMut() -> Result<T, Wrong>,
    wanted: &T,
) -> Result<(), Wrong> {
    let until = deadline();
    loop {
        let seen = look().await?;
        if seen == *wanted || past(until) {
            return expect(what, &seen, wanted);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "a client has no clock but the system's")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

pub(crate) fn deadline() -> Instant {
    now() + WAIT
}

pub(crate) fn past(until: Instant) -> bool {
    now() > until
}

/// The error code of something that must not succeed.
pub(crate) fn refusal<T: Debug>(what: &str, done: Result<T, KafkaError>) -> Result<RDKafkaErrorCode, Wrong> {
    match done {
        Err(failure) => failure.rdkafka_error_code().ok_or_else(|| format!("{what}: {failure}").into()),
        Ok(done) => Err(format!("{what} succeeded: {done:?}").into()),
    }
}

pub(crate) fn numbers(from: usize, to: usize, step: usize) -> Vec<String> {
    (from..to).step_by(step).map(|n| n.to_string()).collect()
}

/// Returns when every record is in the log.
pub(crate) async fn write<V: AsRef<str>>(
    producer: &FutureProducer,
    topic: &str,
    partition: i32,
    values: &[V],
) -> Result<(), Wrong> {
    let sent = values.iter().map(|value| {
        let record = FutureRecord::<(), str>::to(topic).partition(partition).payload(value.as_ref());
        producer.send_result(record).map_err(|(failure, _)| failure)
    });
    for delivery in sent.collect::<Result<Vec<_>, _>>()? {
        delivery.await?.map_err(|(failure, _)| failure)?;
    }
    Ok(())
}

impl App {
    pub(crate) fn new(bootstrap: &str, name: &str) -> Result<Self, Wrong> {
        let run = uuid::Uuid::new_v4().as_fields().0;
        let admin = ClientConfig::new().set("bootstrap.servers", bootstrap).create()?;
        Ok(Self { bootstrap: bootstrap.to_owned(), prefix: format!("rdkafka-{run:08x}-{name}"), admin })
    }

    pub(crate) fn id(&self, suffix: &str) -> String {
        format!("{}{suffix}", self.prefix)
    }

    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.bootstrap);
        config
    }

    pub(crate) async fn topic(&self, suffix: &str, partitions: i32) -> Result<String, Wrong> {
        let topic = self.id(suffix);
        let new = NewTopic::new(&topic, partitions, TopicReplication::Fixed(1)).set("retention.ms", "3600000");
        for made in self.admin.create_topics([&new], &AdminOptions::new()).await? {
            made.map_err(|(name, code)| format!("{name} is not made: {code}"))?;
        }
        eventually("partitions", async || self.partitions(&topic), &usize::try_from(partitions)?).await?;
        Ok(topic)
    }

    /// Looks through all topics: to ask for one by its name makes it, if it is not there.
    pub(crate) fn partitions(&self, topic: &str) -> Result<usize, Wrong> {
        let found = self.admin.inner().fetch_metadata(None, WAIT)?;
        let found = found.topics().iter().filter(|found| found.name() == topic);
        Ok(found.map(|topic| topic.partitions().len()).sum())
    }

    /// Without transactions; in order, also over a retry.
    pub(crate) fn plain(&self) -> Result<FutureProducer, Wrong> {
        Ok(self.config().set("enable.idempotence", "true").create()?)
    }

    /// One that may lose its connection at any moment, since it waits half a second for an answer.
    pub(crate) fn impatient(&self) -> Result<FutureProducer, Wrong> {
        let mut config = self.config();
        config.set("enable.idempotence", "true").set("socket.timeout.ms", "500").set("socket.max.fails", "1");
        config.set("topic.metadata.refresh.interval.ms", "50").set("batch.num.messages", "20").set("linger.ms", "0");
        Ok(config.create()?)
    }

    pub(crate) fn transactional(&self, suffix: &str, timeout_ms: u32) -> Result<FutureProducer, Wrong> {
        let mut config = self.config();
        config.set("transactional.id", self.id(suffix)).set("transaction.timeout.ms", timeout_ms.to_string());
        let producer: FutureProducer = config.create()?;
        producer.init_transactions(WAIT)?;
        Ok(producer)
    }

    pub(crate) fn reader(&self, isolation: &str, group: &str) -> Result<StreamConsumer, Wrong> {
        let mut config = self.config();
        config.set("group.id", group).set("isolation.level", isolation).set("enable.auto.commit", "false");
        config.set("auto.offset.reset", "earliest").set("enable.partition.eof", "true");
        config.set("fetch.wait.max.ms", "5000").set("client.id", "member");
        Ok(config.create()?)
    }

    /// Everything that a reader sees now, a list for each partition: what lies before the end it is told of.
    pub(crate) async fn read(&self, topic: &str, isolation: &str, partitions: i32) -> Read {
        let consumer = self.reader(isolation, &self.id("-reader"))?;
        let mut places = TopicPartitionList::new();
        for partition in 0..partitions {
            places.add_partition_offset(topic, partition, Offset::Beginning)?;
        }
        consumer.assign(&places)?;
        let mut seen = (0..partitions).map(|partition| (partition, Vec::new())).collect::<BTreeMap<_, _>>();
        let mut open = partitions;
        while open > 0 {
            match tokio::time::timeout(WAIT, consumer.recv()).await? {
                Ok(message) => seen.entry(message.partition()).or_default().push(text(&message)),
                Err(KafkaError::PartitionEOF(_)) => open -= 1,
                Err(failure) => return Err(failure.into()),
            }
        }
        Ok(seen.into_values().collect())
    }

    /// The last stable offset, or the high watermark, of partition 0.
    pub(crate) fn last_offset(&self, topic: &str, isolation: &str) -> Result<i64, Wrong> {
        Ok(self.reader(isolation, &self.id("-reader"))?.fetch_watermarks(topic, 0, WAIT)?.1)
    }
}

pub(crate) fn text(message: &impl Message) -> String {
    String::from_utf8_lossy(message.payload().unwrap_or_default()).into_owned()
}

/// The next record of a consumer; ends of partitions are passed over.
pub(crate) async fn next(consumer: &StreamConsumer) -> Result<(i64, String), Wrong> {
    loop {
        match tokio::time::timeout(WAIT, consumer.recv()).await? {
            Ok(message) => return Ok((message.offset(), text(&message))),
            Err(KafkaError::PartitionEOF(_)) => {}
            Err(failure) => return Err(failure.into()),
        }
    }
}

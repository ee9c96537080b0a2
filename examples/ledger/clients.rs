//! Clients with the settings that this program needs, each with its reason.

use std::sync::atomic::{AtomicBool, Ordering};

use rdkafka::consumer::{BaseConsumer, ConsumerContext, Rebalance};
use rdkafka::error::KafkaResult;
use rdkafka::producer::{DefaultProducerContext, ThreadedProducer};
use rdkafka::topic_partition_list::TopicPartitionListElem;
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{ClientConfig, ClientContext, TopicPartitionList};

/// What is read.
pub(crate) const PAYMENTS: &str = "payments";
/// What is written, and the state that a restart reads: partition n here belongs to partition n of the payments.
pub(crate) const CHANGES: &str = "balance-changes";
/// The other topic that is written, by the key of the payment.
pub(crate) const AUDIT: &str = "audit";
/// Partitions of the payments and of the changes.
pub(crate) const PARTITIONS: i32 = 4;
/// Partitions of the audit.
pub(crate) const AUDIT_PARTITIONS: i32 = 2;
/// The group whose offsets say how far the payments are processed.
pub(crate) const GROUP: &str = "ledger";

/// How long a transaction may stay open before the broker aborts it. Every reader of its topics waits that long when an
/// instance dies for good, so it is little more than the slowest transaction takes.
const TRANSACTION_TIMEOUT_MS: &str = "10000";

/// A producer with transactions.
pub(crate) type Producer = ThreadedProducer<DefaultProducerContext>;

/// The transactional producer of one instance. Its id is the same after a restart, so that the restart ends what the
/// instance before left open; no two instances have the same one at a time, or they would fence each other.
pub(crate) fn producer(bootstrap: &str, transactional_id: &str) -> KafkaResult<Producer> {
    ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("transactional.id", transactional_id)
        .set("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS)
        .set("linger.ms", "2")
        .create()
}

/// The consumer of the payments. Its offsets are committed by the producer's transactions and in no other way.
pub(crate) fn consumer(bootstrap: &str) -> KafkaResult<BaseConsumer<Assignment>> {
    ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", GROUP)
        .set("enable.auto.commit", "false")
        .set("isolation.level", "read_committed")
        .set("auto.offset.reset", "earliest")
        .set("session.timeout.ms", "6000")
        .create_with_context(Assignment::default())
}

/// A consumer that reads given partitions from their start to their end, in no group.
pub(crate) fn reader(bootstrap: &str, isolation: &str) -> KafkaResult<BaseConsumer> {
    ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", GROUP)
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("isolation.level", isolation)
        .create()
}

/// Notes that the group gave or took partitions while a poll was under way.
#[derive(Default)]
pub(crate) struct Assignment {
    changed: AtomicBool,
}

impl Assignment {
    /// Whether the assignment changed since the last time this was asked.
    pub(crate) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::AcqRel)
    }
}

impl ClientContext for Assignment {}

impl ConsumerContext for Assignment {
    fn pre_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        let numbers = |list: &TopicPartitionList| -> Vec<i32> {
            list.elements().iter().map(TopicPartitionListElem::partition).collect()
        };
        match rebalance {
            Rebalance::Assign(given) => eprintln!("the group gives partitions {:?}", numbers(given)),
            Rebalance::Revoke(taken) => eprintln!("the group takes partitions {:?}", numbers(taken)),
            Rebalance::Error(error) => eprintln!("the group has no partitions for us: {error}"),
        }
        self.changed.store(true, Ordering::Release);
    }
}

/// What the broker says to a topic that exists already.
pub(crate) const EXISTS: RDKafkaRespErr = RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS;

//! Consume, process, produce: members of one group, each with a transactional id of its own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::producer::Producer as _;
use rdkafka::{ClientContext, Message, Offset, TopicPartitionList};

use super::producer::Producer;
use super::{Client, INPUTS, OUTPUTS, Run};
use crate::child::now;
use crate::dice::Dice;
use crate::history::{Kind, Part, Told, Topic};
use crate::librdkafka::{self, CALL, Stop, settle};

/// The group of all processors.
pub(crate) const GROUP: &str = "processors";
/// Most records of one transaction.
const RECORDS: usize = 25;
/// Longest silence after which a smaller batch is processed.
const SILENCE: Duration = Duration::from_millis(20);
/// A consumer that shows nothing for so long while it should is replaced: what it waits for may be an answer that a
/// cut connection has taken along.
const SILENT: Duration = Duration::from_secs(15);

/// Notes that the group gave or took partitions while a poll was under way.
#[derive(Default)]
struct Assignment {
    changed: AtomicBool,
}

impl ClientContext for Assignment {}

impl ConsumerContext for Assignment {
    fn pre_rebalance(&self, _: &BaseConsumer<Self>, _: &Rebalance<'_>) {
        self.changed.store(true, Ordering::Release);
    }
}

pub(super) struct Processor<'a> {
    run: &'a Run,
    name: String,
    dice: Dice,
    producer: Option<Producer>,
    consumer: Option<BaseConsumer<Assignment>>,
    heard: std::time::Instant,
}

impl<'a> Processor<'a> {
    pub(super) fn new(run: &'a Run, name: &str, dice: Dice) -> Self {
        Self { run, name: name.to_owned(), dice, producer: None, consumer: None, heard: now() }
    }

    /// Partitions and offsets of what is to be processed next. Whatever was read before the group moved partitions is
    /// read again, here or elsewhere, from the committed offset.
    fn gather(&mut self) -> Vec<(i32, i64)> {
        let consumer = self.consumer.get_or_insert_with(|| member(self.run));
        let mut batch = Vec::new();
        while batch.len() < RECORDS {
            let polled = consumer.poll(SILENCE);
            if consumer.context().changed.swap(false, Ordering::AcqRel) {
                batch.clear();
            }
            match polled {
                None => break,
                Some(Ok(message)) => batch.push((message.partition(), message.offset())),
                // The client connects again by itself.
                Some(Err(_)) => {}
            }
        }
        batch
    }

    /// One transaction up to its end; what was told of it is in the history.
    fn process(&mut self, producer: &Producer, batch: &[(i32, i64)]) -> Result<(), Stop> {
        settle(|| producer.client.begin_transaction())?;
        let attempt = self.run.history.lock().begin(&self.name, Kind::Transaction);
        self.run.history.lock().end(attempt, Told::Aborted);
        let mut next: BTreeMap<i32, i64> = BTreeMap::new();
        for source in batch {
            let part = Part { topic: Topic::Out, number: self.dice.partition(OUTPUTS) };
            producer.send(self.run, (attempt, part, Some(*source)), &mut self.dice)?;
            next.insert(source.0, source.1 + 1);
        }
        let mut offsets = TopicPartitionList::new();
        for (partition, next) in next {
            let added = offsets.add_partition_offset(Topic::In.name(), partition, Offset::Offset(next));
            added.map_err(Stop::StartOver)?;
        }
        let member = self.consumer.as_ref().and_then(BaseConsumer::group_metadata);
        let member = member.ok_or(Stop::Abort(KafkaError::Canceled))?;
        settle(|| producer.client.send_offsets_to_transaction(&offsets, &member, CALL))?;
        if self.dice.permille(100) {
            return Err(Stop::Abort(KafkaError::Canceled));
        }
        self.run.history.lock().end(attempt, Told::Nothing);
        producer.commit(self.run)?;
        self.run.history.lock().end(attempt, Told::Committed);
        Ok(())
    }

    /// Back to where the group stands: an abort does not move the consumer by itself.
    fn rewind(&mut self) {
        let rewound = self.consumer.as_ref().is_some_and(|consumer| rewind(consumer).is_ok());
        if !rewound {
            self.consumer = None;
        }
    }
}

impl Client for Processor<'_> {
    fn attempt(&mut self) {
        let Some(producer) = self.producer.take() else {
            match Producer::owner(self.run, &self.name) {
                Ok(producer) => {
                    self.producer = Some(producer);
                    self.rewind();
                }
                Err(_) => std::thread::sleep(self.dice.ms(20, 100)),
            }
            return;
        };
        let batch = self.gather();
        if batch.is_empty() {
            self.producer = Some(producer);
            if self.heard.elapsed() > SILENT {
                self.consumer = None;
                self.heard = now();
            }
            return;
        }
        self.heard = now();
        let stays = match self.process(&producer, &batch) {
            Ok(()) => true,
            Err(Stop::Abort(_)) => {
                let aborted = producer.abort(self.run).is_ok();
                if aborted {
                    self.rewind();
                }
                aborted
            }
            Err(Stop::StartOver(_)) => false,
        };
        producer.report(self.run);
        // The next owner rewinds: only then is it known what became of this one's transaction.
        self.producer = stays.then_some(producer);
    }

    /// The heart beats on its own while the group waits; only what is polled is asked for.
    fn rest(&mut self) {
        self.heard = now();
    }
}

fn member(run: &Run) -> BaseConsumer<Assignment> {
    let mut config = librdkafka::client(&run.bootstrap());
    config
        .set("group.id", GROUP)
        .set("enable.auto.commit", "false")
        .set("isolation.level", "read_committed")
        .set("auto.offset.reset", "earliest")
        .set("fetch.wait.max.ms", "20")
        .set("heartbeat.interval.ms", "300")
        .set("session.timeout.ms", "3000");
    let consumer: BaseConsumer<Assignment> = config.create_with_context(Assignment::default()).unwrap();
    consumer.subscribe(&[Topic::In.name()]).unwrap();
    consumer
}

fn rewind(consumer: &BaseConsumer<Assignment>) -> KafkaResult<()> {
    let assigned = consumer.assignment()?;
    if assigned.count() == 0 {
        return Ok(());
    }
    let stands = consumer.committed_offsets(assigned, CALL)?;
    for mut place in stands.elements() {
        place.error()?;
        if !matches!(place.offset(), Offset::Offset(_)) {
            place.set_offset(Offset::Beginning)?;
        }
    }
    let sought = consumer.seek_partitions(stands, CALL)?;
    debug_assert!(sought.count() <= usize::try_from(INPUTS).unwrap());
    sought.elements().iter().try_for_each(|place| place.error())
}

//! One producer, one consumer, and the balances that follow from what they committed.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseRecord, Producer as _};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{Message, Offset, TopicPartitionList};

use crate::clients::{self, AUDIT, Assignment, CHANGES, PAYMENTS};
use crate::outcome::{CALL, Stop, settle};
use crate::payments::Payment;
use crate::reading::{again, read_committed};
use crate::run::Options;

/// Longest silence after which a smaller batch is processed.
const SILENCE: Duration = Duration::from_millis(50);

/// Balances by account.
type Balances = BTreeMap<String, i64>;

/// What an instance has while all goes well. Nothing in it outlives a failure: it follows from the topics.
pub(crate) struct Session<'a> {
    bootstrap: &'a str,
    options: &'a Options,
    producer: clients::Producer,
    consumer: BaseConsumer<Assignment>,
    /// Of each partition that this instance processes, as of the last committed transaction.
    balances: BTreeMap<i32, Balances>,
    transactions: u32,
    aborted: u32,
    /// What the consumer last complained of, to say it once.
    complaint: String,
}

/// Payments read and not yet processed.
#[derive(Default)]
struct Batch {
    payments: Vec<(i32, Payment)>,
    /// Where to read on, by partition.
    next: BTreeMap<i32, i64>,
}

impl<'a> Session<'a> {
    /// Takes the transactional id, which ends whatever the process before left open, and joins the group.
    pub(crate) fn open(bootstrap: &'a str, options: &'a Options) -> Result<Self, Stop> {
        let producer =
            clients::producer(bootstrap, &format!("ledger-{}", options.instance)).map_err(Stop::StartOver)?;
        settle(|| producer.init_transactions(CALL))?;
        let consumer = clients::consumer(bootstrap).map_err(Stop::StartOver)?;
        consumer.subscribe(&[PAYMENTS]).map_err(Stop::StartOver)?;
        eprintln!("instance {}: ready", options.instance);
        Ok(Self {
            bootstrap,
            options,
            producer,
            consumer,
            balances: BTreeMap::new(),
            transactions: 0,
            aborted: 0,
            complaint: String::new(),
        })
    }

    /// Batch after batch, each one transaction. Comes back only when the session is over.
    pub(crate) fn work(&mut self, committed: &mut u32) -> Result<(), Stop> {
        loop {
            let batch = self.gather()?;
            if batch.payments.is_empty() {
                continue;
            }
            settle(|| self.producer.begin_transaction())?;
            self.transactions += 1;
            match self.process(&batch) {
                Ok(Some(balances)) => {
                    self.keep(balances);
                    *committed += 1;
                }
                Ok(None) => self.abort("on purpose")?,
                Err(Stop::Abort(error)) => self.abort(&error.to_string())?,
                Err(stop @ Stop::StartOver(_)) => return Err(stop),
            }
        }
    }

    /// Reads until the batch is full or nothing comes. Whatever was read before the group moved partitions is dropped:
    /// it is read again, here or elsewhere, from the committed offset.
    fn gather(&mut self) -> Result<Batch, Stop> {
        let mut batch = Batch::default();
        while batch.payments.len() < self.options.batch {
            let polled = self.consumer.poll(SILENCE);
            if self.consumer.context().take_changed() {
                batch = Batch::default();
                self.balances.clear();
            }
            match polled {
                None => break,
                Some(Ok(message)) => {
                    let text = String::from_utf8_lossy(message.payload().unwrap_or_default()).into_owned();
                    match Payment::parse(&text) {
                        Ok(payment) => batch.payments.push((message.partition(), payment)),
                        Err(error) => eprintln!("passed over: {error}"),
                    }
                    batch.next.insert(message.partition(), message.offset() + 1);
                }
                Some(Err(error @ KafkaError::MessageConsumptionFatal(_))) => return Err(Stop::StartOver(error)),
                // The client connects again by itself.
                Some(Err(error)) => self.complain(error.to_string()),
            }
        }
        Ok(batch)
    }

    fn complain(&mut self, complaint: String) {
        if self.complaint != complaint {
            eprintln!("instance {}: {complaint}", self.options.instance);
            self.complaint = complaint;
        }
    }

    /// One transaction: both outputs and the offsets. Gives the balances after it; `None` if it is to be aborted.
    fn process(&mut self, batch: &Batch) -> Result<Option<BTreeMap<i32, Balances>>, Stop> {
        let mut after: BTreeMap<i32, Balances> = BTreeMap::new();
        for (partition, payment) in &batch.payments {
            let before = self.balance(*partition, &payment.account)?;
            let balance = after.entry(*partition).or_default().entry(payment.account.clone()).or_insert(before);
            *balance += payment.cents;
            let change = format!("{payment},{balance}");
            self.send(BaseRecord::to(CHANGES).partition(*partition).key(&payment.account).payload(&change))?;
            self.send(BaseRecord::to(AUDIT).key(&payment.id.to_string()).payload(&payment.to_string()))?;
        }
        self.send_offsets(batch)?;
        if self.transactions == self.options.die_after {
            std::process::abort();
        }
        if self.options.abort_every > 0 && self.transactions.is_multiple_of(self.options.abort_every) {
            return Ok(None);
        }
        settle(|| self.producer.commit_transaction(CALL))?;
        Ok(Some(after))
    }

    /// The account's balance by all committed transactions. A partition's balances are read when its first payment
    /// comes: by then the group's offset is stable, so nobody can commit anything behind this instance's back.
    fn balance(&mut self, partition: i32, account: &str) -> Result<i64, Stop> {
        if !self.balances.contains_key(&partition) {
            let balances = self.restore(partition)?;
            eprintln!("instance {}: partition {partition} has {} accounts", self.options.instance, balances.len());
            self.balances.insert(partition, balances);
        }
        Ok(self.balances.get(&partition).and_then(|balances| balances.get(account)).copied().unwrap_or(0))
    }

    fn restore(&self, partition: i32) -> Result<Balances, Stop> {
        let records = read_committed(self.bootstrap, CHANGES, &[partition]).map_err(|failure| {
            eprintln!("instance {}: {failure}", self.options.instance);
            Stop::StartOver(KafkaError::Canceled)
        })?;
        let last = records.iter().filter_map(|record| {
            let (_, balance) = record.value.rsplit_once(',')?;
            Some((record.key.clone(), balance.parse::<i64>().ok()?))
        });
        Ok(last.collect())
    }

    fn send(&self, record: BaseRecord<'_, String, String>) -> Result<(), Stop> {
        let mut record = record;
        loop {
            match self.producer.send(record) {
                Ok(()) => return Ok(()),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                    record = back;
                    std::thread::sleep(SILENCE);
                }
                Err((error, _)) => return Err(Stop::Abort(error)),
            }
        }
    }

    /// How far this batch read, as part of the transaction. The group's metadata goes along: it is how the broker knows
    /// that these partitions still are this instance's.
    fn send_offsets(&self, batch: &Batch) -> Result<(), Stop> {
        let mut offsets = TopicPartitionList::new();
        for (partition, next) in &batch.next {
            let added = offsets.add_partition_offset(PAYMENTS, *partition, Offset::Offset(*next));
            added.map_err(Stop::StartOver)?;
        }
        let member = self.consumer.group_metadata().ok_or(Stop::StartOver(KafkaError::Canceled))?;
        settle(|| self.producer.send_offsets_to_transaction(&offsets, &member, CALL))
    }

    /// Committed: what was computed becomes what is known.
    fn keep(&mut self, after: BTreeMap<i32, Balances>) {
        for (partition, balances) in after {
            self.balances.entry(partition).or_default().extend(balances);
        }
        if self.transactions.is_multiple_of(20) {
            let (all, aborted) = (self.transactions, self.aborted);
            eprintln!("instance {}: {all} transactions, {aborted} of them aborted", self.options.instance);
        }
    }

    /// Aborts, then goes back to where the group stands: an abort does not move the consumer by itself, and reading on
    /// would lose the batch.
    fn abort(&mut self, why: &str) -> Result<(), Stop> {
        self.aborted += 1;
        eprintln!("instance {}: transaction {} aborted: {why}", self.options.instance, self.transactions);
        settle(|| self.producer.abort_transaction(CALL))?;
        let assigned = self.consumer.assignment().map_err(Stop::StartOver)?;
        if assigned.count() == 0 {
            return Ok(());
        }
        let mut committed =
            again(|| self.consumer.committed_offsets(assigned.clone(), CALL)).map_err(Stop::StartOver)?;
        for mut place in rewound(&mut committed) {
            place.set_offset(Offset::Beginning).map_err(Stop::StartOver)?;
        }
        self.consumer.seek_partitions(committed, CALL).map_err(Stop::StartOver).map(drop)
    }
}

/// Partitions without a committed offset are read from their start.
fn rewound(committed: &mut TopicPartitionList) -> Vec<rdkafka::topic_partition_list::TopicPartitionListElem<'_>> {
    committed.elements().into_iter().filter(|place| !matches!(place.offset(), Offset::Offset(_))).collect()
}

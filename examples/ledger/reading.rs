//! Reading a topic from its start to its end, once.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::message::BorrowedMessage;
use rdkafka::{Message, Offset, TopicPartitionList};

use crate::Failure;
use crate::clients::reader;

const CALL: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);
/// Longest wait for open transactions to end, in pauses: longer than the broker lets one live.
const PAUSES: u32 = 600;

/// A record as this program reads it.
pub(crate) struct Record {
    pub(crate) partition: i32,
    pub(crate) key: String,
    pub(crate) value: String,
}

/// Everything that is committed in these partitions, in order within each. What is open when this is called is waited
/// for: a transaction left by an instance that died hides whatever was committed behind it.
pub(crate) fn read_committed(bootstrap: &str, topic: &str, partitions: &[i32]) -> Result<Vec<Record>, Failure> {
    let committed = reader(bootstrap, "read_committed")?;
    let all = reader(bootstrap, "read_uncommitted")?;
    for partition in partitions {
        let end = again(|| all.fetch_watermarks(topic, *partition, CALL))?.1;
        wait_until_stable(&committed, topic, *partition, end)?;
    }
    let mut records = Vec::new();
    read(&committed, topic, partitions, |message| records.push(record(message)))?;
    Ok(records)
}

/// How many records of any kind there are, aborted ones included.
pub(crate) fn count_all(bootstrap: &str, topic: &str, partitions: &[i32]) -> Result<usize, Failure> {
    let mut count = 0;
    read(&reader(bootstrap, "read_uncommitted")?, topic, partitions, |_| count += 1)?;
    Ok(count)
}

/// For a client that reads committed records only, the upper watermark is the last stable offset.
fn wait_until_stable(committed: &BaseConsumer, topic: &str, partition: i32, end: i64) -> Result<(), Failure> {
    for _ in 0..PAUSES {
        if again(|| committed.fetch_watermarks(topic, partition, CALL))?.1 >= end {
            return Ok(());
        }
        sleep(PAUSE);
    }
    Err(Failure::Says(format!("{topic}-{partition}: a transaction stays open, or the broker stays away")))
}

fn read(
    consumer: &BaseConsumer,
    topic: &str,
    partitions: &[i32],
    mut visit: impl FnMut(&BorrowedMessage<'_>),
) -> Result<(), Failure> {
    let mut from_start = TopicPartitionList::new();
    for partition in partitions {
        from_start.add_partition_offset(topic, *partition, Offset::Beginning)?;
    }
    consumer.assign(&from_start)?;
    let mut open: BTreeSet<i32> = partitions.iter().copied().collect();
    let mut quiet = 0;
    while !open.is_empty() {
        match consumer.poll(PAUSE) {
            Some(Ok(message)) => {
                quiet = 0;
                visit(&message);
            }
            Some(Err(KafkaError::PartitionEOF(partition))) => {
                open.remove(&partition);
            }
            // The client connects again by itself; what it says meanwhile is for the curious.
            Some(Err(error)) => eprintln!("reading {topic}: {error}"),
            None => quiet += 1,
        }
        if quiet > PAUSES {
            return Err(Failure::Says(format!("{topic}: nothing can be read")));
        }
    }
    Ok(())
}

fn record(message: &BorrowedMessage<'_>) -> Record {
    let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
    Record { partition: message.partition(), key: text(message.key()), value: text(message.payload()) }
}

/// A question that a broker may be away for.
pub(crate) fn again<T>(ask: impl Fn() -> KafkaResult<T>) -> KafkaResult<T> {
    for _ in 0..10 {
        if let Ok(answer) = ask() {
            return Ok(answer);
        }
        sleep(PAUSE);
    }
    ask()
}

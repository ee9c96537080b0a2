//! The file into the topic, in one transaction: all of it or nothing.

use std::path::Path;

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::producer::{BaseRecord, Producer as _};

use crate::Failure;
use crate::clients::{AUDIT, AUDIT_PARTITIONS, CHANGES, EXISTS, PARTITIONS, PAYMENTS, producer};
use crate::outcome::{CALL, Stop, settle};
use crate::payments::{Payment, read_file};
use crate::reading::read_committed;

/// Loads the file.
pub(crate) fn load(bootstrap: &str, file: &Path) -> Result<(), Failure> {
    let payments = read_file(file)?;
    make_topics(bootstrap)?;
    let producer = producer(bootstrap, "ledger-load")?;
    let stopped = |stop: Stop| Failure::Says(format!("nothing was loaded: {}", stop.error()));
    settle(|| producer.init_transactions(CALL)).map_err(stopped)?;
    let partitions: Vec<i32> = (0..PARTITIONS).collect();
    if !read_committed(bootstrap, PAYMENTS, &partitions)?.is_empty() {
        return Err(Failure::Says(format!("the topic {PAYMENTS} is loaded already")));
    }
    settle(|| producer.begin_transaction()).map_err(stopped)?;
    for payment in &payments {
        send(&producer, payment)?;
    }
    settle(|| producer.commit_transaction(CALL)).map_err(stopped)?;
    eprintln!("{} payments loaded", payments.len());
    Ok(())
}

/// The account is the key: all payments of an account are in one partition, in order.
fn send(producer: &crate::clients::Producer, payment: &Payment) -> Result<(), Failure> {
    let value = payment.to_string();
    let record = BaseRecord::to(PAYMENTS).key(&payment.account).payload(&value);
    producer.send(record).map_err(|(error, _)| Failure::Kafka(error))
}

fn make_topics(bootstrap: &str) -> Result<(), Failure> {
    let admin: AdminClient<DefaultClientContext> = ClientConfig::new().set("bootstrap.servers", bootstrap).create()?;
    let topics = [(PAYMENTS, PARTITIONS), (CHANGES, PARTITIONS), (AUDIT, AUDIT_PARTITIONS)]
        .map(|(name, partitions)| NewTopic::new(name, partitions, TopicReplication::Fixed(1)));
    let patient = AdminOptions::new().request_timeout(Some(CALL)).operation_timeout(Some(CALL));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for made in runtime.block_on(admin.create_topics(&topics, &patient))? {
        match made {
            Ok(_) => {}
            Err((_, code)) if code == EXISTS.into() => {}
            Err((name, code)) => return Err(Failure::Says(format!("topic {name}: {code}"))),
        }
    }
    Ok(())
}

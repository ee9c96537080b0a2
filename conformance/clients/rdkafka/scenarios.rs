//! Transactions, and the idempotent producer without them.

use std::time::Duration;

use rdkafka::consumer::Consumer as _;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::producer::{FutureRecord, Producer as _};
use rdkafka::{Offset, TopicPartitionList};

use super::app::{ALL, App, COMMITTED, Outcome, WAIT, eventually, expect, next, now, numbers, refusal, write};

/// Two topics, three partitions each, one transaction over all of them at a time.
pub(crate) async fn commit(app: &App) -> Outcome {
    let topics = [app.topic("-a", 3).await?, app.topic("-b", 3).await?];
    let producer = app.transactional("", 60_000)?;
    let mut wanted = vec![Vec::new(); 3];
    for turn in 0..10 {
        producer.begin_transaction()?;
        for (partition, wanted) in (0..).zip(&mut wanted) {
            let values = (0..10).map(|n| format!("{turn}/{partition}/{n}")).collect::<Vec<_>>();
            for topic in &topics {
                write(&producer, topic, partition, &values).await?;
            }
            wanted.extend(values);
        }
        producer.commit_transaction(WAIT)?;
    }
    for topic in &topics {
        expect("committed records", &app.read(topic, COMMITTED, 3).await?, &wanted)?;
    }
    Ok("600 records in 10 transactions over 6 partitions".to_owned())
}

/// Transactions of three producers lie across each other; about half are aborted. Cases C-03, C-06, C-10.
pub(crate) async fn abort(app: &App) -> Outcome {
    let topic = app.topic("", 1).await?;
    let producers =
        ["-0", "-1", "-2"].into_iter().map(|id| app.transactional(id, 60_000)).collect::<Result<Vec<_>, _>>()?;
    let (mut log, mut kept) = (Vec::new(), Vec::new());
    for turn in 0..12 {
        let commits = |n: usize| (turn * 5 + n * 3) % 4 < 2;
        for producer in &producers {
            producer.begin_transaction()?;
        }
        for part in 0..2 {
            for (n, producer) in producers.iter().enumerate() {
                let values = (0..3).map(|m| format!("{turn}/{n}/{part}/{m}")).collect::<Vec<_>>();
                write(producer, &topic, 0, &values).await?;
                kept.extend(values.iter().filter(|_| commits(n)).cloned());
                log.extend(values);
            }
        }
        for (n, producer) in producers.iter().enumerate().rev() {
            if commits(n) { producer.commit_transaction(WAIT)? } else { producer.abort_transaction(WAIT)? }
        }
    }
    let unseen = log.len() - kept.len();
    expect("committed records", &app.read(&topic, COMMITTED, 1).await?, &vec![kept])?;
    expect("all records", &app.read(&topic, ALL, 1).await?, &vec![log])?;
    Ok(format!("36 transactions, {unseen} of 216 records unseen"))
}

/// Reads, doubles and writes; each third transaction is aborted at first. Cases C-14, C-58.
pub(crate) async fn offsets(app: &App) -> Outcome {
    let (source, target) = (app.topic("-in", 1).await?, app.topic("-out", 1).await?);
    write(&app.plain()?, &source, 0, &numbers(0, 100, 1)).await?;
    let (consumer, producer) = (app.reader(COMMITTED, &app.id(""))?, app.transactional("", 60_000)?);
    consumer.subscribe(&[&source])?;
    let at = |offset| -> Result<TopicPartitionList, super::app::Wrong> {
        let mut places = TopicPartitionList::new();
        places.add_partition_offset(&source, 0, offset)?;
        Ok(places)
    };
    let (mut stored, mut turns) = (0, 0);
    while stored < 100 {
        turns += 1;
        producer.begin_transaction()?;
        let mut end = stored;
        for _ in 0..10 {
            let (offset, value) = next(&consumer).await?;
            expect("offset of the record", &offset, &end)?;
            write(&producer, &target, 0, &[(2 * value.parse::<u32>()?).to_string()]).await?;
            end += 1;
        }
        let metadata = consumer.group_metadata().ok_or("no metadata of the group")?;
        producer.send_offsets_to_transaction(&at(Offset::Offset(end))?, &metadata, WAIT)?;
        if turns % 3 == 0 {
            producer.abort_transaction(WAIT)?;
            consumer.seek(&source, 0, Offset::Offset(stored), WAIT)?;
        } else {
            producer.commit_transaction(WAIT)?;
            stored = end;
        }
        let found = consumer.committed_offsets(at(Offset::Invalid)?, WAIT)?;
        let found = found.find_partition(&source, 0).ok_or("no offset")?.offset();
        expect("offset of the group", &found, &Offset::Offset(stored))?;
    }
    expect("results", &app.read(&target, COMMITTED, 1).await?, &vec![numbers(0, 200, 2)])?;
    Ok(format!("100 records in {turns} transactions"))
}

/// An open transaction holds a waiting reader back, and its commit wakes it. Cases C-02, C-08.
pub(crate) async fn isolation(app: &App) -> Outcome {
    let topic = app.topic("", 1).await?;
    let (outside, producer) = (app.plain()?, app.transactional("", 60_000)?);
    write(&outside, &topic, 0, &["before"]).await?;
    producer.begin_transaction()?;
    write(&producer, &topic, 0, &["inside"]).await?;
    write(&outside, &topic, 0, &["behind"]).await?;
    let list = |values: &[&str]| vec![values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>()];
    expect("committed records", &app.read(&topic, COMMITTED, 1).await?, &list(&["before"]))?;
    expect("all records", &app.read(&topic, ALL, 1).await?, &list(&["before", "inside", "behind"]))?;
    expect("last stable offset", &app.last_offset(&topic, COMMITTED)?, &1)?;
    expect("high watermark", &app.last_offset(&topic, ALL)?, &3)?;

    let waiting = app.reader(COMMITTED, &app.id("-waiting"))?;
    let mut places = TopicPartitionList::new();
    places.add_partition_offset(&topic, 0, Offset::Offset(1))?;
    waiting.assign(&places)?;
    let early = tokio::time::timeout(Duration::from_secs(1), next(&waiting)).await;
    expect("nothing while open", &early.is_err(), &true)?;
    producer.commit_transaction(WAIT)?;
    let began = now();
    let seen = [next(&waiting).await?, next(&waiting).await?];
    let woken = began.elapsed().as_millis();
    expect("records after the commit", &seen, &[(1, "inside".to_owned()), (2, "behind".to_owned())])?;
    expect("last stable offset", &app.last_offset(&topic, COMMITTED)?, &4)?;
    Ok(format!("woken {woken} ms after the commit"))
}

/// The second owner of an id aborts the first one's transaction. Cases C-13, C-29.
pub(crate) async fn fencing(app: &App) -> Outcome {
    let topic = app.topic("", 1).await?;
    let first = app.transactional("", 60_000)?;
    first.begin_transaction()?;
    write(&first, &topic, 0, &["first"]).await?;
    let second = app.transactional("", 60_000)?;
    let code = refusal("commit of the first", first.commit_transaction(WAIT))?;
    expect("refusal", &code, &RDKafkaErrorCode::Fenced)?;
    second.begin_transaction()?;
    write(&second, &topic, 0, &["second"]).await?;
    second.commit_transaction(WAIT)?;
    expect("committed records", &app.read(&topic, COMMITTED, 1).await?, &vec![vec!["second".to_owned()]])?;
    let all = vec![vec!["first".to_owned(), "second".to_owned()]];
    expect("all records", &app.read(&topic, ALL, 1).await?, &all)?;
    Ok(format!("{code:?}"))
}

/// The broker aborts what was left open, and its producer is fenced. Cases C-12, C-35.
pub(crate) async fn timeout(app: &App) -> Outcome {
    let topic = app.topic("", 1).await?;
    let producer = app.transactional("", 2000)?;
    producer.begin_transaction()?;
    write(&producer, &topic, 0, &["late"]).await?;
    let began = now();
    eventually("last stable offset", async || app.last_offset(&topic, COMMITTED), &2).await?;
    let took = began.elapsed();
    expect("not aborted early", &(took > Duration::from_millis(1900)), &true)?;
    let code = refusal("commit", producer.commit_transaction(WAIT))?;
    expect("refusal", &code, &RDKafkaErrorCode::Fenced)?;
    expect("committed records", &app.read(&topic, COMMITTED, 1).await?, &vec![Vec::new()])?;
    Ok(format!("aborted after {:.1} s of 2", took.as_secs_f32()))
}

/// The broker hangs for longer than the client waits: it connects anew and sends batches again. Case C-61.
pub(crate) async fn idempotence(app: &App) -> Outcome {
    let topic = app.topic("", 3).await?;
    let broker = std::env::var("BROKER_PID").ok().and_then(|pid| rustix::process::Pid::from_raw(pid.parse().ok()?));
    let producer = app.impatient()?;
    let mut hung = 0;
    for turn in 0..6_u32 {
        let values = (1000 * turn..1000 * (turn + 1)).map(|n| (n.to_string(), n % 3)).collect::<Vec<_>>();
        let mut sent = Vec::new();
        for (value, partition) in &values {
            let record = FutureRecord::<(), str>::to(&topic).partition(i32::try_from(*partition)?).payload(value);
            sent.push(producer.send_result(record).map_err(|(failure, _)| failure)?);
        }
        if let Some(broker) = broker.filter(|_| turn % 2 == 1) {
            rustix::process::kill_process(broker, rustix::process::Signal::STOP)?;
            tokio::time::sleep(Duration::from_millis(1200)).await;
            rustix::process::kill_process(broker, rustix::process::Signal::CONT)?;
            hung += 1;
        }
        for delivery in sent {
            delivery.await?.map_err(|(failure, _)| failure)?;
        }
    }
    let wanted = (0..3).map(|partition| numbers(partition, 6000, 3)).collect();
    expect("records", &app.read(&topic, COMMITTED, 3).await?, &wanted)?;
    Ok(format!("6000 records, the broker hung {hung} times"))
}

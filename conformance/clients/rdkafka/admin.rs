//! What the admin client has.

use rdkafka::Offset;
use rdkafka::TopicPartitionList;
use rdkafka::admin::{AdminOptions, AlterConfig, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::consumer::{CommitMode, Consumer as _};
use rdkafka::error::RDKafkaErrorCode;

use super::app::{App, COMMITTED, Outcome, WAIT, Wrong, eventually, expect, next, numbers, write};

/// The one result of a request for one thing; its error code otherwise.
fn one<T, N>(mut answers: Vec<Result<T, (N, RDKafkaErrorCode)>>) -> Result<T, RDKafkaErrorCode> {
    answers.pop().map_or(Err(RDKafkaErrorCode::Fail), |answer| answer.map_err(|(_, code)| code))
}

/// Topics, configs, partitions, records and groups from their making to their end. Cases C-90, C-91.
pub(crate) async fn admin(app: &App) -> Outcome {
    let topic = app.topic("", 2).await?;
    let options = AdminOptions::new();
    let again = NewTopic::new(&topic, 2, TopicReplication::Fixed(1));
    let again = one(app.admin.create_topics([&again], &options).await?).err();
    expect("made twice", &again, &Some(RDKafkaErrorCode::TopicAlreadyExists))?;

    expect("retention.ms", &retention(app, &topic).await?, &Some("3600000".to_owned()))?;
    let change = AlterConfig::new(ResourceSpecifier::Topic(&topic)).set("retention.ms", "7200000");
    one(app.admin.alter_configs([&change], &options).await?)?;
    eventually("retention.ms", async || retention(app, &topic).await, &Some("7200000".to_owned())).await?;
    one(app.admin.create_partitions([&NewPartitions::new(&topic, 4)], &options).await?)?;
    eventually("partitions", async || app.partitions(&topic), &4).await?;

    write(&app.plain()?, &topic, 0, &numbers(0, 10, 1)).await?;
    let mut cut = TopicPartitionList::new();
    cut.add_partition_offset(&topic, 0, Offset::Offset(4))?;
    let cut = app.admin.delete_records(&cut, &options).await?;
    let start = cut.find_partition(&topic, 0).ok_or("no answer for the partition")?.offset();
    expect("low watermark", &start, &Offset::Offset(4))?;
    expect("records left", &app.read(&topic, COMMITTED, 1).await?, &vec![numbers(4, 10, 1)])?;

    groups(app, &topic).await?;
    one(app.admin.delete_topics(&[&topic], &options).await?)?;
    eventually("partitions", async || app.partitions(&topic), &0).await?;
    Ok("topics, configs, partitions, records, groups".to_owned())
}

async fn retention(app: &App, topic: &str) -> Result<Option<String>, Wrong> {
    let asked = [ResourceSpecifier::Topic(topic)];
    let mut found = app.admin.describe_configs(&asked, &AdminOptions::new()).await?;
    let resource = found.pop().ok_or("no answer for the topic")??;
    Ok(resource.get("retention.ms").and_then(|entry| entry.value.clone()))
}

async fn groups(app: &App, topic: &str) -> Result<(), Wrong> {
    let group = app.id("-group");
    let consumer = app.reader(COMMITTED, &group)?;
    consumer.subscribe(&[topic])?;
    let (offset, _) = next(&consumer).await?;
    let mut place = TopicPartitionList::new();
    place.add_partition_offset(topic, 0, Offset::Offset(offset + 1))?;
    consumer.commit(&place, CommitMode::Sync)?;
    let listed = consumer.fetch_group_list(Some(&group), WAIT)?;
    let listed = listed.groups().iter().map(|group| {
        let members = group.members().iter().map(|member| member.client_id().to_owned()).collect::<Vec<_>>();
        (group.name().to_owned(), group.state().to_owned(), members)
    });
    let wanted = vec![(group.clone(), "Stable".to_owned(), vec!["member".to_owned()])];
    expect("groups", &listed.collect::<Vec<_>>(), &wanted)?;
    let used = one(app.admin.delete_groups(&[&group], &AdminOptions::new()).await?).err();
    expect("deleted while in use", &used, &Some(RDKafkaErrorCode::NonEmptyGroup))?;
    drop(consumer);
    one(app.admin.delete_groups(&[&group], &AdminOptions::new()).await?)?;
    let gone = one(app.admin.delete_groups(&[&group], &AdminOptions::new()).await?).err();
    expect("deleted twice", &gone, &Some(RDKafkaErrorCode::GroupIdNotFound))
}

//! Topics, committed offsets, and what a client asks first.

use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_log_dirs_request::DescribableLogDirTopic;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use kafka_protocol::messages::{
    ApiVersionsRequest, ApiVersionsResponse, CreatePartitionsRequest, CreateTopicsRequest, DeleteRecordsRequest,
    DeleteTopicsRequest, DescribeConfigsRequest, DescribeLogDirsRequest, DescribeLogDirsResponse,
    IncrementalAlterConfigsRequest, MetadataRequest, MetadataResponse, OffsetCommitRequest, OffsetFetchRequest,
    OffsetFetchResponse, incremental_alter_configs_request,
};

use super::txn::Member;
use super::{Client, text};

/// An OffsetFetch of one offset; version 8.
pub(crate) fn offset_fetch_request(group: &str, (topic, part): (&str, i32), stable: bool) -> OffsetFetchRequest {
    let topic = OffsetFetchRequestTopics::default().with_name(text(topic).into()).with_partition_indexes(vec![part]);
    let group = OffsetFetchRequestGroup::default().with_group_id(text(group).into()).with_topics(Some(vec![topic]));
    OffsetFetchRequest::default().with_groups(vec![group]).with_require_stable(stable)
}

/// The only offset of an answer: code and offset, -1 if there is none.
pub(crate) fn offset_fetched(answer: &OffsetFetchResponse) -> (i16, i64) {
    let group = &answer.groups[0];
    if group.error_code != 0 {
        return (group.error_code, -1);
    }
    let result = &group.topics[0].partitions[0];
    (result.error_code, result.committed_offset)
}

impl Client {
    /// ApiVersions as a client that names itself asks.
    pub(crate) fn api_versions(&mut self) -> ApiVersionsResponse {
        let request = ApiVersionsRequest::default()
            .with_client_software_name(text("raw"))
            .with_client_software_version(text("1.0"));
        self.call(3, &request)
    }

    /// Metadata of these topics, all for none; makes them only if it is told so.
    pub(crate) fn metadata(&mut self, topics: Option<&[&str]>, make: bool) -> MetadataResponse {
        let topic = |name: &&str| MetadataRequestTopic::default().with_name(Some(text(name).into()));
        let request = MetadataRequest::default()
            .with_topics(topics.map(|topics| topics.iter().map(topic).collect()))
            .with_allow_auto_topic_creation(make);
        self.call(9, &request)
    }

    /// CreateTopics of one topic.
    pub(crate) fn create_topic(&mut self, name: &str, partitions: i32) -> i16 {
        self.create_topic_with(name, partitions, &[])
    }

    /// The same with settings.
    pub(crate) fn create_topic_with(&mut self, name: &str, partitions: i32, configs: &[(&str, &str)]) -> i16 {
        let config = |(name, value): &(&str, &str)| {
            CreatableTopicConfig::default().with_name(text(name)).with_value(Some(text(value)))
        };
        let topic = CreatableTopic::default()
            .with_name(text(name).into())
            .with_num_partitions(partitions)
            .with_replication_factor(-1)
            .with_configs(configs.iter().map(config).collect());
        self.call(7, &CreateTopicsRequest::default().with_topics(vec![topic])).topics[0].error_code
    }

    /// CreatePartitions without assignments: of each topic its name, code, and whether there is a message.
    pub(crate) fn create_partitions(
        &mut self,
        version: i16,
        topics: &[(&str, i32)],
        validate_only: bool,
    ) -> Vec<(String, i16, bool)> {
        let topic = |(name, count): &(&str, i32)| {
            let topic = CreatePartitionsTopic::default().with_name(text(name).into()).with_count(*count);
            topic.with_assignments(None)
        };
        let request = CreatePartitionsRequest::default()
            .with_topics(topics.iter().map(topic).collect())
            .with_validate_only(validate_only);
        let results = self.call(version, &request).results.into_iter();
        results.map(|result| (result.name.to_string(), result.error_code, result.error_message.is_some())).collect()
    }

    /// IncrementalAlterConfigs of one resource, by kind and name; operations are 0 SET, 1 DELETE, 2 APPEND, 3 SUBTRACT.
    pub(crate) fn alter_keys(&mut self, (kind, name): (i8, &str), keys: &[(&str, i8, Option<&str>)]) -> i16 {
        let key = |(key, operation, value): &(&str, i8, Option<&str>)| {
            let key = incremental_alter_configs_request::AlterableConfig::default().with_name(text(key));
            key.with_config_operation(*operation).with_value(value.map(text))
        };
        let resource = incremental_alter_configs_request::AlterConfigsResource::default()
            .with_resource_type(kind)
            .with_resource_name(text(name))
            .with_configs(keys.iter().map(key).collect());
        let answer = self.call(1, &IncrementalAlterConfigsRequest::default().with_resources(vec![resource]));
        answer.responses[0].error_code
    }

    /// Sets keys of a topic.
    pub(crate) fn set_topic(&mut self, topic: &str, keys: &[(&str, &str)]) -> i16 {
        let keys: Vec<_> = keys.iter().map(|(key, value)| (*key, 0, Some(*value))).collect();
        self.alter_keys((2, topic), &keys)
    }

    /// What a topic was given, by DescribeConfigs: sorted keys with their values.
    pub(crate) fn given_to(&mut self, topic: &str) -> Vec<(String, String)> {
        let resource = DescribeConfigsResource::default()
            .with_resource_type(2)
            .with_resource_name(text(topic))
            .with_configuration_keys(None);
        let answer = self.call(4, &DescribeConfigsRequest::default().with_resources(vec![resource]));
        let given = answer.results[0].configs.iter().filter(|config| config.config_source == 1);
        given.map(|config| (config.name.to_string(), config.value.as_deref().unwrap_or_default().to_owned())).collect()
    }

    /// DeleteTopics of one topic.
    pub(crate) fn delete_topic(&mut self, name: &str) -> i16 {
        let request = DeleteTopicsRequest::default().with_topic_names(vec![text(name).into()]);
        self.call(5, &request).responses[0].error_code
    }

    /// DeleteRecords of one partition: code and first offset, -1 if it is refused.
    pub(crate) fn delete_records(&mut self, version: i16, (topic, part): (&str, i32), offset: i64) -> (i16, i64) {
        let partition = DeleteRecordsPartition::default().with_partition_index(part).with_offset(offset);
        let topic = DeleteRecordsTopic::default().with_name(text(topic).into()).with_partitions(vec![partition]);
        let request = DeleteRecordsRequest::default().with_topics(vec![topic]).with_timeout_ms(30_000);
        let result = &self.call(version, &request).topics[0].partitions[0];
        (result.error_code, result.low_watermark)
    }

    /// DescribeLogDirs of these partitions, all for none.
    pub(crate) fn log_dirs(&mut self, version: i16, parts: Option<&[(&str, &[i32])]>) -> DescribeLogDirsResponse {
        let topic = |(name, parts): &(&str, &[i32])| {
            DescribableLogDirTopic::default().with_topic(text(name).into()).with_partitions(parts.to_vec())
        };
        let topics = parts.map(|parts| parts.iter().map(topic).collect());
        self.call(version, &DescribeLogDirsRequest::default().with_topics(topics))
    }

    /// OffsetCommit of one offset.
    pub(crate) fn offset_commit(
        &mut self,
        group: &str,
        member: &Member,
        (topic, part, offset): (&str, i32, i64),
    ) -> i16 {
        let offset = OffsetCommitRequestPartition::default().with_partition_index(part).with_committed_offset(offset);
        let topic = OffsetCommitRequestTopic::default().with_name(text(topic).into()).with_partitions(vec![offset]);
        let request = OffsetCommitRequest::default()
            .with_group_id(text(group).into())
            .with_generation_id_or_member_epoch(member.generation)
            .with_member_id(text(&member.id))
            .with_group_instance_id(member.instance.as_deref().map(text))
            .with_topics(vec![topic]);
        self.call(8, &request).topics[0].partitions[0].error_code
    }

    /// OffsetFetch of one offset: code and offset, -1 if there is none.
    pub(crate) fn offset_fetch(&mut self, group: &str, (topic, part): (&str, i32), stable: bool) -> (i16, i64) {
        offset_fetched(&self.call(8, &offset_fetch_request(group, (topic, part), stable)))
    }
}

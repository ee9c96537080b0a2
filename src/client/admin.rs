//! Topics, and what is left of groups.

use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::{CreateTopicsRequest, DeleteGroupsRequest, DeleteTopicsRequest};

use super::cluster::{Whom, text};
use super::{Cluster, Failure};

const TOPIC_ALREADY_EXISTS: i16 = 36;
const NOT_CONTROLLER: i16 = 41;

/// How long the broker may take, in milliseconds.
const WITHIN_MS: i32 = 10_000;

impl Cluster {
    /// Makes a topic unless there is one of that name.
    ///
    /// # Errors
    /// As [`Cluster::insist`].
    pub async fn make_topic(&mut self, name: &str, partitions: i32, settings: &[(&str, &str)]) -> Result<(), Failure> {
        let setting = |(name, value): &(&str, &str)| {
            CreatableTopicConfig::default().with_name(text(name)).with_value(Some(text(value)))
        };
        let topic = CreatableTopic::default()
            .with_name(text(name).into())
            .with_num_partitions(partitions)
            .with_replication_factor(-1)
            .with_configs(settings.iter().map(setting).collect());
        let request = CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(WITHIN_MS);
        let whom = self.controller().await?;
        let answer = self.ask_node(whom, 4..=7, &request).await?;
        match answer.topics.first().map(|topic| topic.error_code) {
            Some(0 | TOPIC_ALREADY_EXISTS) => Ok(()),
            Some(code) => Err(Failure::Refused { what: "CreateTopics", code }),
            None => Err(Failure::foreign("CreateTopics", "the topic is left out")),
        }
    }

    /// Removes a topic.
    ///
    /// # Errors
    /// As [`Cluster::insist`].
    pub async fn remove_topic(&mut self, name: &str) -> Result<(), Failure> {
        let names = vec![text(name).into()];
        let request = DeleteTopicsRequest::default().with_topic_names(names).with_timeout_ms(WITHIN_MS);
        let whom = self.controller().await?;
        let answer = self.ask_node(whom, 1..=5, &request).await?;
        match answer.responses.first().map(|topic| topic.error_code) {
            Some(0) => Ok(()),
            Some(code) => Err(Failure::Refused { what: "DeleteTopics", code }),
            None => Err(Failure::foreign("DeleteTopics", "the topic is left out")),
        }
    }

    /// Removes a group with its offsets.
    ///
    /// # Errors
    /// As [`Cluster::insist`].
    pub async fn remove_group(&mut self, group: &str) -> Result<(), Failure> {
        let request = DeleteGroupsRequest::default().with_groups_names(vec![text(group).into()]);
        let code = |answer: &kafka_protocol::messages::DeleteGroupsResponse| {
            answer.results.first().map_or(NOT_CONTROLLER, |result| result.error_code)
        };
        self.insist(&Whom::Group(group.to_owned()), (0..=2, &request), code).await.map(drop)
    }

    /// The node that changes topics; brokers that pass such requests on may name any.
    async fn controller(&mut self) -> Result<i32, Failure> {
        Ok(self.metadata(None).await?.controller_id.0)
    }
}

//! What administrators ask of groups and topics, as the edge sees it.

use crate::engine::catalog::{ChangeConfigs, GrowTopic, Refused};
use crate::engine::group::{GroupDescription, GroupListing};
use crate::engine::{GroupId, PartId, Refusal};
use crate::runtime::broker::{Broker, misplaced};
use crate::runtime::post::{Answer, Command, Show};

impl Broker {
    /// DescribeGroups, in the order asked for; none for a group that there is not.
    ///
    /// # Errors
    /// Only when the process stops.
    pub async fn describe_groups(
        &self,
        ids: Vec<GroupId>,
    ) -> Result<Vec<(GroupId, Option<GroupDescription>)>, Refusal> {
        let Answer::Groups(groups) = self.ask(Command::Show(Show::Groups(ids))).await? else { return Err(misplaced()) };
        Ok(groups)
    }

    /// ListGroups, unfiltered.
    ///
    /// # Errors
    /// Only when the process stops.
    pub async fn list_groups(&self) -> Result<Vec<(GroupId, GroupListing)>, Refusal> {
        let Answer::GroupList(groups) = self.ask(Command::Show(Show::AllGroups)).await? else {
            return Err(misplaced());
        };
        Ok(groups)
    }

    /// DeleteGroups, in the order asked for.
    ///
    /// # Errors
    /// Only when the process stops or has no room; each group has its own result.
    pub async fn delete_groups(&self, ids: Vec<GroupId>) -> Result<Vec<Result<(), Refusal>>, Refusal> {
        let Answer::Each(deleted) = self.ask(Command::DeleteGroups(ids)).await? else { return Err(misplaced()) };
        Ok(deleted)
    }

    /// OffsetDelete, in the order asked for.
    ///
    /// # Errors
    /// G-466; each partition has its own result.
    pub async fn delete_offsets(
        &self,
        group: GroupId,
        parts: Vec<PartId>,
    ) -> Result<Vec<Result<(), Refusal>>, Refusal> {
        let Answer::Each(deleted) = self.ask(Command::DeleteOffsets(group, parts)).await? else {
            return Err(misplaced());
        };
        Ok(deleted)
    }

    /// CreatePartitions: per name, in the order they first appear.
    ///
    /// # Errors
    /// `KafkaStorageError` when the disk is nearly full, else only when the process stops; each name has its own result.
    pub async fn grow_topics(
        &self,
        specs: Vec<GrowTopic>,
        validate_only: bool,
    ) -> Result<Vec<(String, Result<(), Refused>)>, Refusal> {
        if self.is_short_of_room() && !validate_only {
            return Err(Refusal::KafkaStorageError);
        }
        let Answer::Grown(grown) = self.ask(Command::GrowTopics { specs, validate_only }).await? else {
            return Err(misplaced());
        };
        Ok(grown)
    }

    /// AlterConfigs, IncrementalAlterConfigs: per resource, in the order of the request. Also on a full disk, for it is
    /// the way to have less kept.
    ///
    /// # Errors
    /// Only when the process stops or has no room; each resource has its own result.
    pub async fn change_configs(
        &self,
        resources: Vec<ChangeConfigs>,
        validate_only: bool,
    ) -> Result<Vec<Result<(), Refused>>, Refusal> {
        let Answer::Changed(changed) = self.ask(Command::ChangeConfigs { resources, validate_only }).await? else {
            return Err(misplaced());
        };
        Ok(changed)
    }
}

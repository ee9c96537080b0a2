//! Groups within the ledger: their steps, their rows, and the offsets committed under their eye.

use super::Ledger;
use super::rows::{RowKey, RowValue};
use crate::engine::group::{
    Group, GroupAnswer, Join, JoinAnswer, LeaveAnswer, LeavingMember, OffsetAge, Settings, Step, Sync, SyncAnswer,
    commit_to_unknown, join_unknown,
};
use crate::engine::txn::{Claimed, Position};
use crate::engine::{Claim, GroupId, Now, PartId, Refusal, ReplyTo};

/// Whom to tell what.
pub type Answers = Vec<(ReplyTo, GroupAnswer)>;

impl Ledger {
    /// JoinGroup.
    pub fn join(&mut self, id: &GroupId, join: &Join, (reply, limits): (ReplyTo, &Settings), now: Now) -> Answers {
        if id.is_empty() {
            let refused = JoinAnswer::refused(Refusal::InvalidGroupId, join.member.clone());
            return vec![(reply, refused.into())];
        }
        match self.groups.get(id) {
            Some(group) => {
                let step = group.join(join, reply, limits, now);
                self.take_step(id, step)
            }
            None => match join_unknown(join, reply, limits, now) {
                Ok(step) => self.take_step(id, step),
                Err(answer) => vec![(reply, answer.into())],
            },
        }
    }

    /// SyncGroup.
    pub fn sync(&mut self, id: &GroupId, sync: &Sync, reply: ReplyTo, now: Now) -> Answers {
        let unknown = if id.is_empty() { Refusal::InvalidGroupId } else { Refusal::UnknownMemberId };
        match self.groups.get(id).filter(|_| !id.is_empty()) {
            Some(group) => {
                let step = group.sync(sync, reply, now);
                self.take_step(id, step)
            }
            None => vec![(reply, SyncAnswer::refused(unknown).into())],
        }
    }

    /// Heartbeat.
    pub fn heartbeat(&mut self, id: &GroupId, claim: &Claim, reply: ReplyTo, now: Now) -> Answers {
        let unknown = if id.is_empty() { Refusal::InvalidGroupId } else { Refusal::UnknownMemberId };
        match self.groups.get(id).filter(|_| !id.is_empty()) {
            Some(group) => {
                let step = group.heartbeat(claim, reply, now);
                self.take_step(id, step)
            }
            None => vec![(reply, GroupAnswer::Heartbeat(Err(unknown)))],
        }
    }

    /// LeaveGroup; of an unknown group nobody can leave (G-456).
    pub fn leave(&mut self, id: &GroupId, leaving: &[LeavingMember], reply: ReplyTo, now: Now) -> Answers {
        match self.groups.get(id) {
            Some(group) => {
                let step = group.leave(leaving, reply, now);
                self.take_step(id, step)
            }
            None => {
                let unknown = |entry: &LeavingMember| LeaveAnswer {
                    leaving: entry.clone(),
                    refusal: Some(Refusal::UnknownMemberId),
                };
                vec![(reply, GroupAnswer::Left(leaving.iter().map(unknown).collect()))]
            }
        }
    }

    /// A group's timers.
    pub fn expire_group(&mut self, id: &GroupId, now: Now) -> Answers {
        match self.groups.get(id).and_then(|group| group.expire(now)) {
            Some(step) => self.take_step(id, step),
            None => Vec::new(),
        }
    }

    /// The process stops: everyone parked in any group is told to look for the coordinator (G-484).
    pub fn stop_groups(&mut self) -> Answers {
        let ids: Vec<GroupId> = self.groups.iter().map(|(id, _)| id.clone()).collect();
        let mut answers = Vec::new();
        for id in ids {
            if let Some(step) = self.groups.get(&id).map(Group::stop) {
                answers.extend(self.take_step(&id, step));
            }
        }
        answers
    }

    /// OffsetCommit: the group's check and the positions in one step.
    ///
    /// # Errors
    /// O-606, O-607; then nothing is committed.
    pub fn commit_offsets(
        &mut self,
        id: &GroupId,
        claim: &Claim,
        (offsets, retention_ms): (&[(PartId, Position)], Option<i64>),
        now: Now,
    ) -> Result<(), Refusal> {
        match self.groups.get(id) {
            Some(group) => {
                group.may_commit(claim)?;
                let step = group.committed(claim, now);
                self.take_step(id, step);
            }
            None => {
                let group = commit_to_unknown(claim, false, now)?;
                self.put_group(id, group);
            }
        }
        let expires = retention_ms.map(|retention| now.wall_ms.saturating_add(retention));
        for (part, position) in offsets {
            self.commit_offset((id.clone(), *part), position.clone(), expires, now);
        }
        Ok(())
    }

    /// TxnOffsetCommit: the transaction's check, then the group's, then the staging, in one step: no rebalance can
    /// come between (T-241 rows 8 to 11).
    ///
    /// # Errors
    /// T-242, T-244; then nothing is staged.
    pub fn stage_for_group(
        &mut self,
        claimed: Claimed<'_>,
        (group_id, claim): (&GroupId, &Claim),
        offsets: Vec<(PartId, Position)>,
        now: Now,
    ) -> Result<(), Refusal> {
        self.may_stage(claimed, group_id)?;
        match self.groups.get(group_id) {
            Some(group) => group.may_stage(claim)?,
            None => {
                let group = commit_to_unknown(claim, false, now)?;
                self.put_group(group_id, group);
            }
        }
        self.stage_offsets(claimed, group_id, offsets, now)
    }

    /// DeleteGroups of one group: with it go its offsets, those that transactions carry for it included (T-824, T-825).
    /// A transaction that was to commit them stays open, and its commit brings nothing back.
    ///
    /// # Errors
    /// G-465: `GroupIdNotFound`, `NonEmptyGroup`.
    pub fn delete_group(&mut self, id: &GroupId) -> Result<(), Refusal> {
        self.groups.get(id).ok_or(Refusal::GroupIdNotFound)?.may_delete()?;
        for part in self.parts_with_offsets(id) {
            self.forget_offset(&(id.clone(), part));
        }
        self.groups.remove(id.clone());
        self.rows.put(RowKey::Group(id.clone()), None);
        Ok(())
    }

    /// OffsetDelete, each partition by itself. That there was no offset is no mistake.
    ///
    /// # Errors
    /// G-466: of the whole `InvalidGroupId`, `GroupIdNotFound`, `NonEmptyGroup`; of a partition
    /// `UnknownTopicOrPartition`, `GroupSubscribedToTopic`.
    pub fn delete_offsets(&mut self, id: &GroupId, parts: &[PartId]) -> Result<Vec<Result<(), Refusal>>, Refusal> {
        if id.is_empty() {
            return Err(Refusal::InvalidGroupId);
        }
        let group = self.groups.get(id).ok_or(Refusal::GroupIdNotFound)?;
        group.may_delete_offsets()?;
        let subscription = group.subscription();
        let verdicts: Vec<Result<(), Refusal>> = (parts.iter())
            .map(|part| {
                let (topic, _) = self.catalog().part(*part).ok_or(Refusal::UnknownTopicOrPartition)?;
                if subscription.covers(&topic.name) { Err(Refusal::GroupSubscribedToTopic) } else { Ok(()) }
            })
            .collect();
        for (part, _) in parts.iter().zip(&verdicts).filter(|(_, verdict)| verdict.is_ok()) {
            self.forget_offset(&(id.clone(), *part));
        }
        Ok(verdicts)
    }

    /// Forgets what groups have left behind long enough (O-641 to O-644), and groups that nothing is left of.
    pub fn expire_offsets(&mut self, retention_ms: i64, now: Now) {
        let ids: Vec<GroupId> = self.groups.iter().map(|(id, _)| id.clone()).collect();
        for id in ids {
            for part in self.expired_offsets(&id, retention_ms, now) {
                self.forget_offset(&(id.clone(), part));
            }
            let empty = self.parts_with_offsets(&id).is_empty();
            if empty && self.groups.get(&id).is_some_and(Group::may_vanish) {
                self.groups.remove(id.clone());
                self.rows.put(RowKey::Group(id), None);
            }
        }
    }

    fn expired_offsets(&self, id: &GroupId, retention_ms: i64, now: Now) -> Vec<PartId> {
        let Some(group) = self.groups.get(id) else { return Vec::new() };
        let old = self.stored_offsets(id).filter(|(part, committed)| {
            let Some((topic, _)) = self.catalog().part(*part) else { return true };
            let age = OffsetAge { committed_ms: committed.at_wall_ms, expires_ms: committed.expires_wall_ms };
            group.forgets(&topic.name, age, retention_ms, now) && !self.is_pending(&(id.clone(), *part))
        });
        old.map(|(part, _)| part).collect()
    }

    fn take_step(&mut self, id: &GroupId, step: Step) -> Answers {
        if step.stored {
            self.rows.put(RowKey::Group(id.clone()), Some(RowValue::Group(step.next.row().encode())));
        }
        self.groups.put(id.clone(), step.next);
        step.answers
    }

    fn put_group(&mut self, id: &GroupId, group: Group) {
        self.rows.put(RowKey::Group(id.clone()), Some(RowValue::Group(group.row().encode())));
        self.groups.put(id.clone(), group);
    }
}

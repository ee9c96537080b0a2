//! A group's members, and which of them holds which instance id.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use crate::engine::{InstanceId, MemberId};

/// A member of a group (G-401).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its id.
    pub id: MemberId,
    /// Its instance id, if it is static.
    pub instance: Option<InstanceId>,
    /// The client id it joined with.
    pub client_id: String,
    /// The host it joined from.
    pub client_host: String,
    /// Milliseconds of silence after which it counts as gone.
    pub session_timeout_ms: i32,
    /// Milliseconds it may need to re-join and to sync.
    pub rebalance_timeout_ms: i32,
    /// What it can speak, most wanted first, with opaque metadata.
    pub protocols: Vec<(String, Bytes)>,
    /// What the leader last gave it.
    pub assignment: Bytes,
    /// Its place in the order of arrival; a replacement takes the place of the one it replaces.
    pub place: u64,
}

impl Member {
    /// Its metadata for `protocol`; empty if it does not speak it.
    #[must_use]
    pub fn metadata(&self, protocol: &str) -> Bytes {
        self.protocols.iter().find(|(name, _)| name == protocol).map(|(_, bytes)| bytes.clone()).unwrap_or_default()
    }

    fn speaks(&self) -> BTreeSet<&str> {
        self.protocols.iter().map(|(name, _)| name.as_str()).collect()
    }
}

pub(super) type Members = BTreeMap<MemberId, Arc<Member>>;

/// Members by id, and static ones by instance. The two maps change together, here only.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Roster {
    members: Arc<Members>,
    statics: Arc<BTreeMap<InstanceId, MemberId>>,
}

impl Roster {
    pub(super) fn of(members: &Arc<Members>) -> Self {
        let holder = |m: &Arc<Member>| m.instance.clone().map(|instance| (instance, m.id.clone()));
        Self { members: Arc::clone(members), statics: Arc::new(members.values().filter_map(holder).collect()) }
    }

    pub(super) fn shared(&self) -> Arc<Members> {
        Arc::clone(&self.members)
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) fn get(&self, id: &MemberId) -> Option<&Arc<Member>> {
        self.members.get(id)
    }

    pub(super) fn contains(&self, id: &MemberId) -> bool {
        self.members.contains_key(id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Member>> {
        self.members.values()
    }

    pub(super) fn ids(&self) -> BTreeSet<MemberId> {
        self.members.keys().cloned().collect()
    }

    /// The member that an instance id stands for.
    pub(super) fn holder(&self, instance: &InstanceId) -> Option<&MemberId> {
        self.statics.get(instance)
    }

    /// The place of whoever comes next.
    pub(super) fn next_place(&self) -> u64 {
        self.iter().map(|m| m.place.saturating_add(1)).max().unwrap_or(0)
    }

    pub(super) fn put(&mut self, member: Member) {
        self.remove(&member.id.clone());
        if let Some(instance) = &member.instance {
            Arc::make_mut(&mut self.statics).insert(instance.clone(), member.id.clone());
        }
        Arc::make_mut(&mut self.members).insert(member.id.clone(), Arc::new(member));
    }

    pub(super) fn remove(&mut self, id: &MemberId) {
        if !self.contains(id) {
            return;
        }
        let removed = Arc::make_mut(&mut self.members).remove(id);
        if let Some(instance) = removed.as_ref().and_then(|m| m.instance.as_ref()) {
            Arc::make_mut(&mut self.statics).remove(instance);
        }
    }

    /// Gives each member what `assignments` has for it, and nothing to whom they do not name. Ids they name that are
    /// not members are passed over (G-444).
    pub(super) fn assign(&mut self, assignments: &[(MemberId, Bytes)]) {
        let given: BTreeMap<&MemberId, &Bytes> = assignments.iter().map(|(id, bytes)| (id, bytes)).collect();
        for (id, member) in Arc::make_mut(&mut self.members) {
            let assignment = given.get(id).map(|bytes| (*bytes).clone()).unwrap_or_default();
            if member.assignment != assignment {
                Arc::make_mut(member).assignment = assignment;
            }
        }
    }

    /// The group's rebalance time-out: the longest of its members' (G-416).
    pub(super) fn rebalance_timeout_ms(&self) -> i64 {
        self.iter().map(|m| i64::from(m.rebalance_timeout_ms)).max().unwrap_or(0)
    }

    /// The protocols that every member speaks.
    fn common(&self) -> BTreeSet<&str> {
        let mut speakers: BTreeMap<&str, usize> = BTreeMap::new();
        for name in self.iter().flat_map(|m| m.speaks()) {
            let count = speakers.entry(name).or_default();
            *count = count.saturating_add(1);
        }
        speakers.into_iter().filter(|(_, count)| *count == self.len()).map(|(name, _)| name).collect()
    }

    /// Whether one of `protocols` is spoken by every member (G-413).
    pub(super) fn all_speak_one_of(&self, protocols: &[(String, Bytes)]) -> bool {
        let common = self.common();
        protocols.iter().any(|(name, _)| common.contains(name.as_str()))
    }

    /// The protocol most members want first among those all speak; of equals the one the leader names earliest
    /// (G-432).
    pub(super) fn elect(&self, leader: &MemberId) -> Arc<str> {
        let common = self.common();
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for member in self.iter() {
            if let Some((name, _)) = member.protocols.iter().find(|(name, _)| common.contains(name.as_str())) {
                let count = votes.entry(name).or_default();
                *count = count.saturating_add(1);
            }
        }
        let most = votes.values().max().copied();
        let wanted = self.get(leader).map(|m| m.protocols.as_slice()).unwrap_or_default();
        let winner = wanted.iter().map(|(name, _)| name.as_str()).find(|name| votes.get(name).copied() == most);
        Arc::from(winner.or_else(|| common.first().copied()).unwrap_or_default())
    }
}

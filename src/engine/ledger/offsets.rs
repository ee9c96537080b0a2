//! Committed offsets: what is stored, and what readers may see of it.
//!
//! A commit decision stores its offsets at once; readers keep seeing the old ones until the decision's markers are
//! written, so that nobody reads on from a position whose output is not visible yet.

use super::Ledger;
use super::rows::{RowKey, RowValue};
use crate::engine::txn::{Position, Staged};
use crate::engine::{GroupId, Now, Offset, PartId};

/// A group's offset on a partition.
pub type OffsetKey = (GroupId, PartId);

/// A stored offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Place in the order of all offset writes.
    pub order: u64,
    /// The position.
    pub position: Position,
    /// When it was committed, wall clock (O-617).
    pub at_wall_ms: i64,
    /// When it is to be forgotten, if the client asked for that (O-617).
    pub expires_wall_ms: Option<i64>,
}

/// What readers see while decided offsets wait for their markers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    seen: Option<Committed>,
    holders: u32,
    /// The place in the order at which the offset was last forgotten: what was decided before it is not shown any more.
    forgotten: Option<u64>,
}

/// What OffsetFetch is told of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Nothing committed.
    Absent,
    /// This position.
    At(Position),
    /// A transaction carries another one, and the reader asked to be told (T-821).
    Unstable,
}

impl Ledger {
    /// A plain commit, already allowed by its group. The last writer wins; going back is allowed (O-618).
    pub fn commit_offset(&mut self, key: OffsetKey, position: Position, expires_wall_ms: Option<i64>, now: Now) {
        let committed = Committed { order: self.next_order(), position, at_wall_ms: now.wall_ms, expires_wall_ms };
        if let Some(held) = self.held.get(&key).cloned() {
            self.held.put(key.clone(), Held { seen: Some(committed.clone()), ..held });
        }
        self.store_offset(key, committed);
    }

    fn store_offset(&mut self, key: OffsetKey, committed: Committed) {
        self.rows.put(RowKey::Offset(key.0.clone(), key.1), Some(RowValue::Offset(committed.clone())));
        self.offsets.put(key, committed);
    }

    /// The committed offset as readers see it now.
    #[must_use]
    pub fn seen_offset(&self, key: &OffsetKey, require_stable: bool) -> Seen {
        if require_stable && self.pending.get(key).is_some() {
            return Seen::Unstable;
        }
        let committed = match self.held.get(key) {
            Some(held) => held.seen.as_ref(),
            None => self.offsets.get(key),
        };
        committed.map_or(Seen::Absent, |committed| Seen::At(committed.position.clone()))
    }

    /// Committed offsets as readers see them now, up to `most` from a key on.
    #[must_use]
    pub fn seen_offsets(&self, from: Option<&OffsetKey>, most: usize) -> Vec<(GroupId, PartId, Offset)> {
        let first = || (GroupId::from(""), PartId(i64::MIN));
        let seen = |(key, stored): (&OffsetKey, &Committed)| {
            let seen = match self.held.get(key) {
                Some(held) => held.seen.as_ref().map_or(-1, |seen| seen.position.offset),
                None => stored.position.offset,
            };
            (key.0.clone(), key.1, seen)
        };
        self.offsets.range(from.cloned().unwrap_or_else(first), |_| true).take(most).map(seen).collect()
    }

    /// Every partition of `group` with an offset, and those a transaction carries one for (T-822 R).
    #[must_use]
    pub fn parts_with_offsets(&self, group: &GroupId) -> Vec<PartId> {
        let from = (group.clone(), PartId(i64::MIN));
        let stored = self.offsets.range(from.clone(), |key| key.0 == *group).map(|(key, _)| key.1);
        let pending = self.pending.range(from, |key| key.0 == *group).map(|(key, _)| key.1);
        let mut parts: Vec<PartId> = stored.chain(pending).collect();
        parts.sort_unstable();
        parts.dedup();
        parts
    }

    /// Forgets a group's offset on a partition, staged ones of open transactions included (T-824), and decided ones that
    /// readers do not see yet.
    pub fn forget_offset(&mut self, key: &OffsetKey) {
        self.offsets.remove(key.clone());
        if let Some(held) = self.held.get(key).cloned() {
            let forgotten = Some(self.next_order());
            self.held.put(key.clone(), Held { seen: None, forgotten, ..held });
        }
        self.rows.put(RowKey::Offset(key.0.clone(), key.1), None);
        if self.pending.get(key).is_some() {
            self.unstage_key(key);
        }
    }

    /// One more open transaction carries an offset for `key`.
    pub(super) fn note_pending(&mut self, key: &OffsetKey) {
        let count = self.pending.get(key).copied().unwrap_or(0);
        self.pending.put(key.clone(), count.saturating_add(1));
    }

    /// One fewer.
    pub(super) fn drop_pending(&mut self, key: &OffsetKey) {
        match self.pending.get(key).copied() {
            Some(count @ 2..) => self.pending.put(key.clone(), count.saturating_sub(1)),
            Some(_) | None => self.pending.remove(key.clone()),
        }
    }

    /// A commit decision stores what its transaction staged, unless a plain commit came after the staging (T-823).
    /// Readers see the old value until [`Ledger::show_decided`].
    pub(super) fn decide_offset(&mut self, key: OffsetKey, staged: Staged, now: Now) -> Committed {
        let committed = Committed {
            order: staged.order,
            position: staged.position,
            at_wall_ms: now.wall_ms,
            expires_wall_ms: None,
        };
        let before = self.offsets.get(&key).cloned();
        let held = match self.held.get(&key).cloned() {
            Some(held) => Held { holders: held.holders.saturating_add(1), ..held },
            None => Held { seen: before.clone(), holders: 1, forgotten: None },
        };
        self.held.put(key.clone(), held);
        if before.is_none_or(|before| before.order < committed.order) {
            self.store_offset(key, committed.clone());
        }
        committed
    }

    /// The markers are written: readers may see a decided offset.
    pub(super) fn show_decided(&mut self, key: &OffsetKey, committed: &Committed) {
        self.drop_pending(key);
        let Some(held) = self.held.get(key).cloned() else { return };
        if held.holders <= 1 {
            self.held.remove(key.clone());
            return;
        }
        let stands = held.seen.as_ref().map(|seen| seen.order).max(held.forgotten);
        let newer = stands.is_none_or(|order| order < committed.order);
        let seen = if newer { Some(committed.clone()) } else { held.seen };
        self.held.put(key.clone(), Held { seen, holders: held.holders.saturating_sub(1), ..held });
    }

    /// Every stored offset on partitions that `wanted` names.
    #[must_use]
    pub fn offset_keys(&self, wanted: impl Fn(&PartId) -> bool) -> Vec<OffsetKey> {
        self.offsets.iter().filter(|(key, _)| wanted(&key.1)).map(|(key, _)| key.clone()).collect()
    }

    /// Stored offsets of one group, for expiry and deletion.
    pub fn stored_offsets<'a>(&'a self, group: &'a GroupId) -> impl Iterator<Item = (PartId, &'a Committed)> + 'a {
        let from = (group.clone(), PartId(i64::MIN));
        self.offsets.range(from, move |key| key.0 == *group).map(|(key, committed)| (key.1, committed))
    }

    /// How many offsets wait for a decision or its markers.
    #[must_use]
    pub fn pending_offsets(&self) -> usize {
        self.pending.len()
    }

    /// Whether an open or undelivered transaction carries an offset of this key.
    #[must_use]
    pub fn is_pending(&self, key: &OffsetKey) -> bool {
        self.pending.get(key).is_some()
    }
}

//! Consumer groups, and how far they are behind.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use prometheus::{Error, GaugeVec, IntCounter, IntGauge};

use super::labels::Label;
use super::series::{Gauges, Table};
use super::topics::{CAP, OTHER};
use super::{GroupState, LagTo, count};
use crate::engine::GroupId;

/// How many records a group has not committed yet, over all its partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupLag {
    /// Of those that read_committed members may have.
    pub to_stable: u64,
    /// Of all.
    pub to_watermark: u64,
}

#[derive(Debug)]
pub(super) struct Groups {
    states: Gauges<GroupState>,
    members: IntGauge,
    lag: GaugeVec,
    dropped: IntCounter,
    /// Groups with series of their own, for as long as they exist. Held while the lags are being filled.
    own: Mutex<BTreeSet<GroupId>>,
}

/// Longest name that becomes a label. A group may be called by any text of any length.
const NAME_BYTES: usize = 200;

fn is_label(group: &GroupId) -> bool {
    let name = group.as_str();
    name.len() <= NAME_BYTES && name != OTHER && !name.chars().any(char::is_control)
}

impl Groups {
    pub(super) fn new(table: &Table, dropped: IntCounter) -> Result<Self, Error> {
        let lag =
            "Offsets between what a group has committed and the ends of its partitions that were used since the start";
        let groups = Self {
            states: table.gauges("groups", "Consumer groups by state", "state")?,
            members: table.int_gauge("group_members", "Members of all groups")?,
            lag: table.open_gauges("group_lag_records", lag, &["group", "to"])?,
            dropped,
            own: Mutex::default(),
        };
        groups.fill(Vec::new())?;
        Ok(groups)
    }

    pub(super) fn set(&self, states: &[(GroupState, u64)], members: u64) {
        for state in GroupState::ALL {
            let sum = states.iter().filter(|(named, _)| named == state).map(|(_, count)| *count).sum();
            self.states.set(*state, count(sum));
        }
        self.members.set(count(members));
    }

    /// Replaces what was there. A group keeps its series while it exists; of new ones those that are furthest behind get some
    /// of what is free. All others share one.
    pub(super) fn fill(&self, mut lags: Vec<(GroupId, GroupLag)>) -> Result<(), Error> {
        let mut own = self.own.lock();
        lags.sort_by(|(a, x), (b, y)| {
            y.to_watermark.cmp(&x.to_watermark).then(y.to_stable.cmp(&x.to_stable)).then_with(|| a.cmp(b))
        });
        let there: BTreeSet<&GroupId> = lags.iter().map(|(group, _)| group).collect();
        own.retain(|group| there.contains(group));
        for (group, _) in lags.iter().filter(|(group, _)| is_label(group)) {
            if own.len() < CAP {
                own.insert(group.clone());
            }
        }
        let (kept, folded): (Vec<_>, Vec<_>) = lags.into_iter().partition(|(group, _)| own.contains(group));
        let rest = folded.iter().fold(GroupLag::default(), |sum, (_, lag)| GroupLag {
            to_stable: sum.to_stable.saturating_add(lag.to_stable),
            to_watermark: sum.to_watermark.saturating_add(lag.to_watermark),
        });
        self.lag.reset();
        self.put(OTHER, rest)?;
        for (group, lag) in &kept {
            self.put(group.as_str(), *lag)?;
        }
        self.dropped.inc_by(u64::try_from(folded.len()).unwrap_or(u64::MAX));
        drop(own);
        Ok(())
    }

    pub(super) fn still<T>(&self, read: impl FnOnce() -> T) -> T {
        let _held = self.own.lock();
        read()
    }

    // Exact up to 2^53 records.
    #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
    fn put(&self, group: &str, lag: GroupLag) -> Result<(), Error> {
        for (to, records) in [(LagTo::LastStableOffset, lag.to_stable), (LagTo::Watermark, lag.to_watermark)] {
            self.lag.get_metric_with_label_values(&[group, to.text()])?.set(records as f64);
        }
        Ok(())
    }
}

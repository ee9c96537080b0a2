//! How long each part of a transaction's end takes, for the metrics. Nothing is decided by it, and nothing of it outlives
//! the process.

use std::collections::BTreeMap;

use super::LedgerOwner;
use crate::engine::ledger::Ledger;
use crate::engine::txn::end::Cause;
use crate::engine::txn::work::{Owed, Stage};
use crate::engine::{Now, Outcome, PartId, TransactionalId};
use crate::metrics::{EndReason, MarkerError, MarkerResult, Phase};
use crate::runtime::events::{Event, end_reason, whole_ms};
use crate::runtime::post::MarkResult;

/// One decision on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Phases {
    outcome: Outcome,
    reason: EndReason,
    /// How long the transaction was open when it was decided, in milliseconds; `None` for what an earlier process decided.
    open_ms: Option<i64>,
    decided_mono_ms: i64,
    /// When it was over for its producer.
    over_mono_ms: Option<i64>,
}

impl Phases {
    /// Of decisions that a start could not carry out.
    pub(super) fn inherited(ledger: &Ledger) -> BTreeMap<u64, Self> {
        let owing = ledger.debts().filter(|(_, owed)| ledger.is_owing(&owed.id));
        let phases = |owed: &Owed| Self {
            outcome: owed.outcome,
            reason: EndReason::Failover,
            open_ms: None,
            decided_mono_ms: owed.since_mono_ms,
            over_mono_ms: None,
        };
        owing.map(|(seq, owed)| (seq, phases(owed))).collect()
    }
}

impl LedgerOwner {
    /// A decision is stored; `seq` names what it owes, if anything.
    pub(super) fn begin_phases(
        &mut self,
        id: &TransactionalId,
        seq: Option<u64>,
        (outcome, cause, open_ms): (Outcome, Cause, i64),
        now: Now,
    ) {
        if let Some(ending) = self.endings.get(id) {
            let took_ms = now.mono_ms.saturating_sub(ending.asked_mono_ms);
            self.events.metrics().phase(Phase::Prepare, whole_ms(took_ms));
        }
        let reason = end_reason(cause);
        match seq {
            Some(seq) => {
                let decided_mono_ms = now.mono_ms;
                let open_ms = Some(open_ms);
                let track = Phases { outcome, reason, open_ms, decided_mono_ms, over_mono_ms: None };
                self.phases.insert(seq, track);
            }
            None => self.events.say(&Event::Completed { outcome, reason, took_ms: Some(open_ms) }),
        }
    }

    /// Every marker is written, as far as the answer waits for it.
    pub(super) fn phases_over(&mut self, seq: u64, now: Now) {
        let Some(track) = self.phases.get_mut(&seq).filter(|track| track.over_mono_ms.is_none()) else { return };
        track.over_mono_ms = Some(now.mono_ms);
        let Phases { outcome, reason, open_ms, decided_mono_ms, .. } = *track;
        let took_ms = now.mono_ms.saturating_sub(decided_mono_ms);
        if open_ms.is_some() {
            self.events.metrics().phase(Phase::Markers, whole_ms(took_ms));
        }
        let took_ms = open_ms.map(|open_ms| open_ms.saturating_add(took_ms));
        self.events.say(&Event::Completed { outcome, reason, took_ms });
    }

    /// Every marker is on disk.
    pub(super) fn phases_done(&mut self, seq: u64, now: Now) {
        self.phases_over(seq, now);
        if let Some(over_mono_ms) = self.phases.remove(&seq).and_then(|track| track.over_mono_ms) {
            let took_ms = now.mono_ms.saturating_sub(over_mono_ms);
            self.events.metrics().phase(Phase::Complete, whole_ms(took_ms));
        }
    }

    /// What a partition said of one marker, `before` it was noted.
    pub(super) fn count_marker(&self, (seq, part): (u64, PartId), result: MarkResult) {
        let Some(owed) = self.ledger.owed.get(&seq) else { return };
        let Some(before) = owed.parts.get(&part).map(|part| part.stage) else { return };
        let metrics = self.events.metrics();
        match result {
            MarkResult::Appended | MarkResult::Synced if before < Stage::Appended => {
                metrics.marker_written(owed.outcome, MarkerResult::Ok);
            }
            MarkResult::Appended | MarkResult::Synced | MarkResult::Gone => {}
            MarkResult::Failed(_) => metrics.marker_written(owed.outcome, MarkerResult::Error),
            MarkResult::Parked => {
                metrics.marker_written(owed.outcome, MarkerResult::Error);
                metrics.marker_retried(MarkerError::PartitionDamaged);
            }
        }
    }
}

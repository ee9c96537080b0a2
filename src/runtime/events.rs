//! What is worth telling an operator, said once: a structured log line and a metric each.

use std::sync::Arc;
use std::time::Duration;

use crate::config::Durability;
use crate::engine::txn::end::Cause;
use crate::engine::{Outcome, PartId, Producer, Refusal, TransactionalId};
use crate::metrics::{EndReason, FencingReason, Invariant, MarkerError, Metrics, SequenceError};
use crate::runtime::tracks::{Moment, Tracks};

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// A decision is stored.
    Decided {
        /// Whose.
        id: TransactionalId,
        /// Which.
        outcome: Outcome,
        /// Why.
        cause: Cause,
        /// How long it was open, in milliseconds.
        open_ms: i64,
    },
    /// A transaction is over: its markers are written.
    Completed {
        /// How it ended.
        outcome: Outcome,
        /// Who ended it.
        reason: EndReason,
        /// Time from its first partition, in milliseconds; not known of one that an earlier process decided.
        took_ms: Option<i64>,
    },
    /// A producer lost its id.
    Fenced {
        /// Which id.
        id: TransactionalId,
        /// The producer that holds it no longer.
        old: Producer,
        /// Who holds it, or what fences at the partitions.
        new: Producer,
        /// Why.
        reason: FencingReason,
    },
    /// A marker could not be written; it will be tried again.
    MarkerRetried {
        /// Of whose transaction.
        id: TransactionalId,
        /// What the partition said.
        refusal: Refusal,
    },
    /// A transaction found open in a log belongs to nobody.
    Orphan {
        /// Whose.
        producer: Producer,
        /// Where.
        part: PartId,
        /// What is promised: in `relaxed` a power cut may take the ledger's row, and this is what comes of it.
        durability: Durability,
    },
    /// A transaction that the ledger knows nothing of was ended by an operator's marker.
    EndedByTool {
        /// Whose.
        producer: Producer,
        /// Where.
        part: PartId,
    },
    /// A tool's marker was refused: the coordinator that it believes in is an earlier one (T-407).
    StaleCoordinator {
        /// Whose transaction it would have ended.
        producer: Producer,
        /// Where.
        part: PartId,
        /// The epoch it came with.
        coordinator_epoch: i32,
    },
    /// A transactional id was forgotten.
    IdExpired {
        /// Which.
        id: TransactionalId,
    },
}

/// Where events go.
#[derive(Clone)]
pub struct Events {
    metrics: Arc<Metrics>,
    tracks: Option<Arc<dyn Tracks>>,
}

impl Events {
    /// Events counted in `metrics`.
    #[must_use]
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self { metrics, tracks: None }
    }

    /// The same, with the moments of transactions told to `tracks`.
    #[must_use]
    pub fn tracked(self, tracks: Option<Arc<dyn Tracks>>) -> Self {
        Self { tracks, ..self }
    }

    /// Whether anybody keeps traces: what only they need is not gathered otherwise.
    #[must_use]
    pub fn is_tracked(&self) -> bool {
        self.tracks.is_some()
    }

    /// Whether anybody keeps a trace of this transaction.
    #[must_use]
    pub fn follows(&self, number: u64) -> bool {
        self.tracks.as_ref().is_some_and(|tracks| tracks.follows(number))
    }

    /// A moment of a transaction has come.
    pub fn note(&self, moment: &Moment<'_>) {
        if let Some(tracks) = &self.tracks {
            tracks.note(moment);
        }
    }

    fn trace_id(&self, id: &TransactionalId) -> Option<String> {
        self.tracks.as_ref().and_then(|tracks| tracks.trace_id(id))
    }

    /// The metrics themselves.
    #[must_use]
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// A producer's batch was refused.
    pub fn refused_sequence(&self, refusal: Refusal) {
        sequence_error(refusal).into_iter().for_each(|error| self.metrics.sequence_error(error));
    }

    /// Says it.
    pub fn say(&self, event: &Event) {
        match event {
            Event::Decided { id, outcome, cause, open_ms } => {
                if *cause != Cause::Client {
                    let trace_id = self.trace_id(id);
                    tracing::info!(
                        transactional_id = ?id.as_str(), ?outcome, ?cause, open_ms, trace_id, "transaction ended by the broker"
                    );
                }
            }
            Event::Completed { outcome, reason, took_ms } => {
                self.metrics.transaction_completed(*outcome, *reason, took_ms.map(whole_ms));
            }
            Event::Fenced { id, old, new, reason } => {
                self.metrics.fenced(*reason);
                self.note(&Moment::Fenced { id, old: *old, new: *new, reason: *reason });
                tracing::info!(
                    transactional_id = ?id.as_str(), producer_id = old.id, old_epoch = old.epoch, new_producer_id = new.id,
                    new_epoch = new.epoch, ?reason, trace_id = self.trace_id(id), "producer fenced"
                );
            }
            Event::MarkerRetried { id, refusal } => {
                let full = *refusal == Refusal::KafkaStorageError;
                self.metrics.marker_retried(if full { MarkerError::StorageFull } else { MarkerError::Other });
                let trace_id = self.trace_id(id);
                tracing::warn!(
                    transactional_id = ?id.as_str(), error = %refusal, trace_id,
                    "marker not written, trying again; its decision stands"
                );
            }
            Event::Orphan { producer, part, durability } => {
                if *durability == Durability::Strict {
                    self.metrics.invariant_violated(Invariant::OrphanTransaction);
                }
                tracing::error!(
                    producer_id = producer.id,
                    epoch = producer.epoch,
                    part = part.0,
                    "open transaction without an owner found in a log; closed with an abort marker"
                );
            }
            Event::EndedByTool { producer, part } => {
                let (producer_id, epoch) = (producer.id, producer.epoch);
                tracing::warn!(producer_id, epoch, part = part.0, "open transaction ended by an operator's marker");
            }
            Event::StaleCoordinator { producer, part, coordinator_epoch } => {
                self.metrics.fenced(FencingReason::StaleCoordinatorEpoch);
                let (producer_id, epoch) = (producer.id, producer.epoch);
                tracing::info!(
                    producer_id,
                    epoch,
                    part = part.0,
                    coordinator_epoch,
                    "marker of an earlier coordinator refused"
                );
            }
            Event::IdExpired { id } => {
                self.metrics.fenced(FencingReason::IdExpired);
                tracing::info!(transactional_id = ?id.as_str(), "transactional id forgotten after its idle time");
            }
        }
    }
}

/// Who ended a transaction, as metrics name it.
#[must_use]
pub fn end_reason(cause: Cause) -> EndReason {
    match cause {
        Cause::Client => EndReason::Client,
        Cause::NewOwner => EndReason::Fenced,
        Cause::Timeout => EndReason::Timeout,
        Cause::Admin => EndReason::Admin,
    }
}

/// Milliseconds of the monotonic clock as a duration.
#[must_use]
pub fn whole_ms(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

/// What a batch is counted under that is refused so, if it is for its sequence, epoch or transaction.
#[must_use]
pub fn sequence_error(refusal: Refusal) -> Option<SequenceError> {
    const NAMES: [(Refusal, SequenceError); 5] = [
        (Refusal::OutOfOrderSequence, SequenceError::OutOfOrder),
        (Refusal::InvalidProducerEpoch, SequenceError::InvalidEpoch),
        (Refusal::InvalidProducerIdMapping, SequenceError::UnknownProducer),
        (Refusal::InvalidTxnState, SequenceError::InvalidTxnState),
        (Refusal::ConcurrentTransactions, SequenceError::Concurrent),
    ];
    NAMES.iter().find(|(name, _)| *name == refusal).map(|(_, error)| *error)
}

//! What becomes of a marker that a tool asks for, past the coordinator (WriteTxnMarkers, T-840 to T-847).
//!
//! In Kafka such a marker ends a transaction in one partition while the coordinator may still commit it in the others
//! (T-846). Here the ledger is asked first, and its word stands: a transaction that it knows ends as a whole, by a decision
//! of its own; a decision that it has taken is carried out; only what it knows nothing of is ended in the partition alone.

use super::Ledger;
use crate::engine::partition::AdminMark;
use crate::engine::txn::work::{OwedPart, Stage};
use crate::engine::{Outcome, PartId, Refusal, TransactionalId};

/// What a tool's marker comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolMark {
    /// The ledger has no part in it: the partition judges by what it knows of the producer.
    InPartition,
    /// It would end a part of this open transaction: all of it is to be aborted.
    EndWhole {
        /// Whose it is.
        id: TransactionalId,
        /// Its number.
        number: u64,
    },
    /// This very decision is being carried out there.
    UnderWay {
        /// Whose.
        id: TransactionalId,
    },
}

impl Ledger {
    /// Judges a tool's marker for one partition.
    ///
    /// # Errors
    /// `InvalidRequest` for negative numbers. `InvalidTxnState` for a commit, for nothing is committed but by a decision of
    /// the ledger, and for an abort of what it has decided to commit. `InvalidProducerIdMapping` for a producer id that was
    /// never given: the marker would fence who gets it. `InvalidProducerEpoch` for an epoch that the id's owner has not
    /// reached: it would fence him (T-212 row 6). `KafkaStorageError` where a decision waits for a damaged partition to be
    /// put right.
    pub fn judge_tool_mark(&self, mark: &AdminMark, part: PartId) -> Result<ToolMark, Refusal> {
        let AdminMark { producer, outcome, .. } = *mark;
        if producer.id < 0 || producer.epoch < 0 {
            return Err(Refusal::InvalidRequest);
        }
        if outcome == Outcome::Commit {
            return Err(Refusal::InvalidTxnState);
        }
        if producer.id >= self.marks().next_producer_id {
            return Err(Refusal::InvalidProducerIdMapping);
        }
        if let Some(under_way) = self.decided_there(mark, part) {
            return under_way;
        }
        let Some((id, txn)) = self.owner_of(producer.id).and_then(|id| Some((id, self.txns.get(id)?))) else {
            return Ok(ToolMark::InPartition);
        };
        if producer.epoch > txn.producer.epoch {
            return Err(Refusal::InvalidProducerEpoch);
        }
        // What is open there under an older epoch is none of this transaction.
        let open = txn.ongoing().filter(|open| producer.epoch == txn.producer.epoch && open.parts.contains(&part));
        Ok(match open {
            Some(open) => ToolMark::EndWhole { id: id.clone(), number: open.number },
            None => ToolMark::InPartition,
        })
    }

    /// The decision about a transaction of this producer whose marker the partition does not have yet.
    fn decided_there(&self, mark: &AdminMark, part: PartId) -> Option<Result<ToolMark, Refusal>> {
        let owes = |owed: &OwedPart| owed.stage < Stage::Appended;
        let (owed, there) = self.debts().find_map(|(_, owed)| {
            let there = owed.parts.get(&part).filter(|there| owes(there))?;
            (owed.marker.id == mark.producer.id).then_some((owed, there))
        })?;
        Some(match there.stage {
            Stage::Parked | Stage::Left => Err(Refusal::KafkaStorageError),
            Stage::Due { .. } | Stage::Asked { .. } | Stage::Appended | Stage::Synced => {
                if owed.outcome != mark.outcome {
                    Err(Refusal::InvalidTxnState)
                } else if mark.producer.epoch > owed.marker.epoch {
                    Err(Refusal::InvalidProducerEpoch)
                } else {
                    Ok(ToolMark::UnderWay { id: owed.id.clone() })
                }
            }
        })
    }
}

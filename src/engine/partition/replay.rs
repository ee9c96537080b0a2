//! The state once more, from the log: at a start, batch by batch, in order (T-714).

use super::Partition;
use super::open::Aborted;
use crate::engine::Now;
use crate::engine::batch::{Header, marker};

impl Partition {
    /// Takes a batch that the log holds. Nothing is refused; what is written is so. `control` is the whole batch, needed
    /// of a control batch only. Gives the index entry of the transaction that it aborts.
    ///
    /// When a batch arrived is not in the log, so it counts as arrived now: a producer is rather remembered too long.
    pub fn replay(&mut self, header: &Header, control: Option<&[u8]>, now: Now) -> Option<Aborted> {
        if !header.is_control() {
            self.take(header, now);
            return None;
        }
        self.log_end = self.log_end.max(header.next_offset());
        // Neither a marker that compaction has emptied nor one of a type from the future ends anything (T-403, T-714).
        let marker = control.and_then(marker::read)?;
        let (producer, outcome) = (header.producer()?, marker.outcome?);
        let closes = self.end_transaction(producer, marker.coordinator_epoch, now);
        self.aborted_by(outcome, producer.id, closes, header.base_offset)
    }
}

#[cfg(test)]
mod tests;

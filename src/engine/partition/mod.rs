//! What a partition knows: its log's ends, its producers, the transactions open on it and who may write them.
//!
//! Everything here follows from the batches of the log, except the grants, which the coordinator gives again when a
//! partition is loaded. The owner lets a turn's batches in one by one, which moves this state, and then writes their
//! bytes at once; should that write fail, it takes the state from the disk again, so nobody learns what was not stored.

mod grants;
mod marks;
mod open;
mod producers;
mod replay;
mod snapshot;

pub use grants::Grant;
pub use marks::{AdminMark, MarkOrder, MarkStep, Written};
pub use open::{Aborted, OpenTransaction};
pub use producers::{Protocol, RETAINED_BATCHES};
pub use snapshot::{EMPTY_SNAPSHOT_BYTES, Invalid};

use grants::{Grants, Permission, PermissionState};
use open::Open;
use producers::{Batch, Entry, Producers, check_epoch, check_sequence};

use crate::engine::batch::Header;
use crate::engine::{Epoch, Now, Offset, Producer, Refusal, TransactionalId};

/// One partition's state, without its bytes.
#[derive(Debug, Clone)]
pub struct Partition {
    log_start: Offset,
    log_end: Offset,
    producers: Producers,
    open: Open,
    grants: Grants,
}

/// A batch that may be acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It was given the offsets from here on; its bytes are to be written.
    Append {
        /// Offset of its first record.
        base_offset: Offset,
    },
    /// It is stored already, maybe not yet synced: to be answered once the watermark has passed it (T-352).
    Duplicate {
        /// Offset of the first record then.
        base_offset: Offset,
        /// Offset of the last record then.
        last_offset: Offset,
        /// When it arrived: the LogAppendTime to answer on topics that have it, and only there (T-352 R).
        arrived_wall_ms: i64,
    },
}

/// A batch that was not let in, and left no trace (T-359, X-95).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAdmitted {
    /// For good.
    Refused(Refusal),
    /// The producer has no permission here: the coordinator knows why, and its answer is the client's (T-373).
    Unverified,
    /// The end of its transaction is being decided, or the marker of an earlier one is on its way: the client is told
    /// what it would be for CONCURRENT_TRANSACTIONS (X-98, T-373).
    Deciding,
}

impl From<Refusal> for NotAdmitted {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// A producer as tools are shown it (T-830).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerState {
    /// The producer id.
    pub id: i64,
    /// The newest epoch that wrote.
    pub epoch: Epoch,
    /// Sequence of its newest record, -1 for none of this epoch.
    pub last_sequence: i32,
    /// When its newest batch or marker arrived, milliseconds since 1970.
    pub last_timestamp: i64,
    /// Of its newest marker, -1 before the first.
    pub coordinator_epoch: i32,
    /// First offset of its open transaction.
    pub current_txn_start: Option<Offset>,
}

impl Partition {
    /// A partition of which no producer is known yet.
    #[must_use]
    pub fn new(log_start: Offset, log_end: Offset) -> Self {
        Self { log_start, log_end, producers: Producers::new(), open: Open::default(), grants: Grants::default() }
    }

    /// Offset of the first record that may be read.
    #[must_use]
    pub fn log_start(&self) -> Offset {
        self.log_start
    }

    /// Offset that the next record gets.
    #[must_use]
    pub fn log_end(&self) -> Offset {
        self.log_end
    }

    /// The log's end as its files have it: at a start, when nothing after a snapshot had to be replayed.
    pub fn set_log_end(&mut self, log_end: Offset) {
        self.log_end = self.log_end.max(log_end);
    }

    /// Moves the log start up. What is known of producers stays (T-542), and so do open transactions (T-541).
    pub fn set_log_start(&mut self, log_start: Offset) {
        self.log_start = self.log_start.max(log_start);
    }

    /// Lets a client's batch in, or says why not. `txn` is the transactional id of the request's header. The batch has
    /// passed `batch::check`.
    ///
    /// On [`Admission::Append`] the log end has moved over the batch, and sequences and open transactions with it.
    ///
    /// # Errors
    /// [`NotAdmitted`]; nothing has changed then.
    pub fn admit(
        &mut self,
        header: &Header,
        txn: Option<&TransactionalId>,
        now: Now,
    ) -> Result<Admission, NotAdmitted> {
        if let Some(producer) = header.producer() {
            let entry = self.producers.get(&producer.id);
            check_epoch(entry, producer.epoch)?;
            let permission = self.permission(header, producer, txn)?;
            if let Some(batch) = entry.and_then(|entry| entry.duplicate_of(header)) {
                return Ok(Admission::Duplicate {
                    base_offset: batch.base_offset(),
                    last_offset: batch.last_offset,
                    arrived_wall_ms: batch.arrived_wall_ms,
                });
            }
            check_writer(entry, header, permission)?;
        }
        let base_offset = self.log_end;
        self.take(&Header { base_offset, ..*header }, now);
        Ok(Admission::Append { base_offset })
    }

    /// The permission that a transactional batch needs; `None` for another batch, which needs none.
    fn permission(
        &self,
        header: &Header,
        producer: Producer,
        txn: Option<&TransactionalId>,
    ) -> Result<Option<PermissionState>, NotAdmitted> {
        if !header.is_transactional() {
            return Ok(None);
        }
        let Some(Permission { grant, state }) = self.grants.get(producer.id) else {
            return Err(NotAdmitted::Unverified);
        };
        if producer.epoch < grant.producer.epoch {
            return Err(Refusal::InvalidProducerEpoch.into());
        }
        if txn != Some(&grant.txn) {
            return Err(Refusal::InvalidProducerIdMapping.into());
        }
        if producer.epoch > grant.producer.epoch {
            return Err(NotAdmitted::Unverified);
        }
        Ok(Some(*state))
    }

    /// Adds a batch that is to be stored, or is: the log end, its producer's entry, and the transaction it may open.
    fn take(&mut self, header: &Header, now: Now) {
        self.log_end = self.log_end.max(header.next_offset());
        let Some(producer) = header.producer() else { return };
        let entry = self.producers.entry(producer.id).or_insert_with(|| Entry::new(producer.epoch, now));
        entry.set_epoch(producer.epoch);
        entry.arrived = now;
        if header.base_sequence >= 0 {
            entry.recent.push(Batch {
                last_sequence: header.last_sequence(),
                last_offset: header.last_offset(),
                offset_delta: header.last_offset_delta,
                arrived_wall_ms: now.wall_ms,
            });
        }
        // What compaction left as a header belongs to a transaction that is over (T-550, T-555).
        if header.is_transactional() && header.count > 0 && entry.open.is_none() {
            entry.open = Some(header.base_offset);
            self.open.begin(producer, header.base_offset, now.wall_ms);
        }
    }

    /// Takes the coordinator's permission for a transaction. A repeat changes nothing.
    pub fn grant(&mut self, grant: Grant) {
        self.grants.give(grant);
    }

    /// Closes the permission of a transaction, at this place among all that comes to the partition, and gives the log
    /// end: what of the transaction lies below it is all there is. Without such a grant there is nothing to close.
    pub fn seal(&mut self, producer_id: i64, txn_no: u64) -> Offset {
        self.grants.set_state(producer_id, txn_no, PermissionState::Sealed);
        self.log_end
    }

    /// Opens the permission again: the decision could not be stored.
    pub fn unseal(&mut self, producer_id: i64, txn_no: u64) {
        self.grants.set_state(producer_id, txn_no, PermissionState::Given);
    }

    /// Number of the commit that must be flushed before a batch of the producer's transaction is acknowledged.
    #[must_use]
    pub fn grant_row(&self, producer_id: i64) -> Option<u64> {
        self.grants.get(producer_id).map(|known| known.grant.row)
    }

    /// First offset that is not decided, at least the log start (T-501, T-541 R). The last stable offset is the lesser
    /// of it and the watermark.
    #[must_use]
    pub fn first_unstable(&self) -> Option<Offset> {
        self.open.earliest().map(|first| first.max(self.log_start))
    }

    /// The open transactions, earliest first.
    pub fn open_transactions(&self) -> impl Iterator<Item = OpenTransaction> {
        self.open.iter()
    }

    /// All producers that are known, by id (T-830).
    #[must_use]
    pub fn describe(&self) -> Vec<ProducerState> {
        let shown = |(id, entry): (&i64, &Entry)| ProducerState {
            id: *id,
            epoch: entry.epoch,
            last_sequence: entry.recent.newest().map_or(-1, |batch| batch.last_sequence),
            last_timestamp: entry.arrived.wall_ms,
            coordinator_epoch: entry.coordinator_epoch,
            current_txn_start: entry.open,
        };
        self.producers.iter().map(shown).collect()
    }

    /// Forgets producers of which nothing came for `expiration_ms` and that have no open transaction (T-362).
    pub fn expire(&mut self, now: Now, expiration_ms: i64) {
        self.producers.retain(|_, entry| {
            entry.open.is_some() || now.mono_ms.saturating_sub(entry.arrived.mono_ms) < expiration_ms
        });
    }

    /// How many producers are known.
    #[must_use]
    pub fn producer_count(&self) -> usize {
        self.producers.len()
    }
}

/// The rules that a batch must pass which is no repeat: seal, sequence, and whose transaction is open.
fn check_writer(
    entry: Option<&Entry>,
    header: &Header,
    permission: Option<PermissionState>,
) -> Result<(), NotAdmitted> {
    let open = entry.and_then(|entry| entry.open.map(|_| entry.epoch));
    match permission {
        Some(PermissionState::Sealed) => return Err(NotAdmitted::Deciding),
        // A transaction is granted when the markers of the one before are appended, so this is but caution: nothing
        // may ever join a transaction of another epoch.
        Some(PermissionState::Given) if open.is_some_and(|epoch| epoch != header.producer_epoch) => {
            return Err(NotAdmitted::Deciding);
        }
        Some(PermissionState::Given) | None => {}
    }
    let opens = permission.filter(|_| open.is_none()).map(|_| Protocol::Classic);
    check_sequence(entry, header, opens)?;
    if permission.is_none() && open.is_some() {
        return Err(Refusal::InvalidTxnState.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests;

//! InitProducerId: who owns an id, and who is fenced by that (T-101 to T-149).

use super::{LAST_EPOCH, State, Txn};
use crate::engine::{Now, Producer, Refusal};

/// What InitProducerId asks for, when it names a transactional id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Init {
    /// Timeout of its transactions, in milliseconds.
    pub timeout_ms: i32,
    /// The pair the caller believes to hold, when it recovers (KIP-360).
    pub expected: Option<Producer>,
}

/// What follows from an InitProducerId.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Initialised {
    /// The id has this value now; a fresh producer id was used up if `used_fresh`.
    Owned {
        /// The value to store.
        next: Txn,
        /// Whether the fresh producer id passed in is now taken.
        used_fresh: bool,
    },
    /// A transaction of the previous owner is open: it is ended first, as an abort with a higher epoch; the caller is
    /// told ConcurrentTransactions at once and asks again (T-140, T-147).
    EndFirst,
}

/// The pair of a request, checked for shape (T-104; negative pairs other than -1/-1 refused, our choice).
///
/// # Errors
/// `InvalidRequest` if just one half is given or either is negative otherwise.
pub fn expected(id: i64, epoch: i16) -> Result<Option<Producer>, Refusal> {
    match (id, epoch) {
        (-1, -1) => Ok(None),
        (0.., 0..) => Ok(Some(Producer { id, epoch })),
        (..=-1, _) | (_, ..=-1) => Err(Refusal::InvalidRequest),
    }
}

/// Timeout limits (T-109).
///
/// # Errors
/// `InvalidTransactionTimeout` outside 1..=`max_ms`.
pub fn check_timeout(timeout_ms: i32, max_ms: i32) -> Result<(), Refusal> {
    if timeout_ms <= 0 || timeout_ms > max_ms { Err(Refusal::InvalidTransactionTimeout) } else { Ok(()) }
}

/// A new owner for an id. `fresh` is a producer id never used, taken if needed. The timeout has been checked.
///
/// # Errors
/// `ProducerFenced` for a pair that is not the owner's, before anything is disturbed (T-113, T-145 R).
pub fn init(txn: Option<&Txn>, request: Init, fresh: i64, now: Now) -> Result<Initialised, Refusal> {
    let Some(txn) = txn else {
        return Ok(owned(Producer { id: fresh, epoch: 0 }, -1, -1, request, now));
    };
    let epoch = txn.producer.epoch;
    let rotated = request.expected.is_some_and(|pair| {
        pair.id == txn.previous_producer_id && pair.id != txn.producer.id && pair.epoch >= LAST_EPOCH
    });
    if let Some(pair) = request.expected
        && (!(pair.id == txn.producer.id || rotated) || (pair.epoch != epoch && pair.epoch != txn.last_epoch))
    {
        return Err(Refusal::ProducerFenced);
    }
    if txn.ongoing().is_some() {
        return Ok(Initialised::EndFirst);
    }
    let repeated = request.expected.is_some_and(|pair| pair.epoch != epoch || rotated);
    if repeated {
        let next =
            Txn { timeout_ms: request.timeout_ms, state: State::Empty, updated_wall_ms: now.wall_ms, ..txn.clone() };
        return Ok(Initialised::Owned { next, used_fresh: false });
    }
    let last_epoch = if request.expected.is_some() { epoch } else { -1 };
    if epoch >= LAST_EPOCH {
        return Ok(owned(Producer { id: fresh, epoch: 0 }, last_epoch, txn.producer.id, request, now));
    }
    let producer = Producer { id: txn.producer.id, epoch: epoch.saturating_add(1) };
    match owned(producer, last_epoch, txn.producer.id, request, now) {
        Initialised::Owned { next, .. } => Ok(Initialised::Owned { next, used_fresh: false }),
        Initialised::EndFirst => Ok(Initialised::EndFirst),
    }
}

fn owned(producer: Producer, last_epoch: i16, previous: i64, request: Init, now: Now) -> Initialised {
    let next = Txn {
        producer,
        last_epoch,
        previous_producer_id: previous,
        timeout_ms: request.timeout_ms,
        state: State::Empty,
        updated_wall_ms: now.wall_ms,
    };
    Initialised::Owned { next, used_fresh: true }
}

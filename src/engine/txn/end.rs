//! The end of a transaction: what EndTxn is told, and the one step that every end goes through.

use super::{Ongoing, State, Txn};
use crate::engine::{Now, Outcome, Producer, Refusal};

/// Why a transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Its producer said so; the epoch stays (T-404).
    Client,
    /// A new owner took the id; the epoch rises so that the old one is fenced at each partition by the marker (T-141).
    NewOwner,
    /// It outlived its timeout (T-603).
    Timeout,
    /// An operator's tool wrote a marker into one of its partitions: then all of it ends, and its producer is fenced.
    Admin,
}

/// What an EndTxn of the classic protocol meets (T-253).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The transaction is open: gather the seals and decide.
    Decide,
    /// This very decision was taken and carried out before: success (T-253 repeat).
    Repeated,
    /// A decision is being carried out: the same one waits a bounded time for it, then both are told
    /// ConcurrentTransactions (T-020; the order's own sentences).
    UnderWay {
        /// Whether it is the decision asked for.
        same: bool,
    },
}

/// Judges an EndTxn. `owed`: whether markers of the id's last decision are still to be written.
///
/// # Errors
/// As [`Txn::owned_by`], before anything else; `InvalidTxnState` if nothing was begun or the other decision was
/// carried out.
pub fn judge(txn: &Txn, claimed: Producer, asked: Outcome, owed: bool) -> Result<Verdict, Refusal> {
    txn.owned_by(claimed)?;
    match txn.state {
        State::Empty => Err(Refusal::InvalidTxnState),
        State::Ongoing(_) => Ok(Verdict::Decide),
        State::Ended { outcome, .. } if owed => Ok(Verdict::UnderWay { same: outcome == asked }),
        State::Ended { outcome, .. } if outcome == asked => Ok(Verdict::Repeated),
        State::Ended { .. } => Err(Refusal::InvalidTxnState),
    }
}

/// A decision taken: the id's next value, and what was open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The value to store.
    pub next: Txn,
    /// What every marker carries: the producer's own epoch, or one more where it is to be fenced (T-404).
    pub marker: Producer,
    /// The transaction that ended.
    pub was: Ongoing,
}

/// Ends transaction `number` of the id, judged on the state as it is now: a seal gathered for an earlier one is void.
///
/// # Errors
/// `InvalidTxnState` if that transaction is not open any more.
pub fn end(txn: &Txn, number: u64, outcome: Outcome, cause: Cause, now: Now) -> Result<Ended, Refusal> {
    let was = txn.ongoing().filter(|ongoing| ongoing.number == number).ok_or(Refusal::InvalidTxnState)?.clone();
    let (epoch, last_epoch) = match cause {
        Cause::Client => (txn.producer.epoch, txn.last_epoch),
        Cause::NewOwner | Cause::Timeout | Cause::Admin => (txn.producer.epoch.saturating_add(1), -1),
    };
    let marker = Producer { id: txn.producer.id, epoch };
    let next = Txn {
        producer: marker,
        last_epoch,
        state: State::Ended { outcome, started_wall_ms: was.started_wall_ms },
        ..txn.with(State::Empty, now)
    };
    Ok(Ended { next, marker, was })
}

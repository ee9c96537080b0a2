//! All fetch sessions: their numbers, the epochs of their requests, and which give way when there is no room (F-702 to F-713).
//!
//! A session is lent to the request that goes by it and given back with the answer. Nothing depends on a session being kept:
//! a client whose session is gone is told so, and names all its partitions again.

use std::collections::{BTreeMap, BTreeSet};

use super::session::Session;
use crate::engine::Refusal;

/// How many sessions there may be, and how much they may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Sessions: `max.incremental.fetch.session.cache.slots`.
    pub slots: usize,
    /// Bytes of all of them; one takes no more than an eighth.
    pub bytes: usize,
    /// How long a session is safe from others that need room, in milliseconds.
    pub safe_ms: i64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { slots: 1_000, bytes: 64 << 20, safe_ms: 120_000 }
    }
}

/// What a request is by its session id and epoch.
#[derive(Debug, PartialEq, Eq)]
pub enum Begun {
    /// In no session.
    Alone,
    /// In none yet: it names all its partitions, and asks for one.
    Fresh,
    /// In this one.
    Within(Loan),
}

/// A session in the hands of a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Loan {
    /// Its id.
    pub id: i32,
    /// The session.
    pub session: Session,
    number: u64,
}

/// Those that are kept.
#[derive(Debug, Default)]
pub struct Sessions {
    limits: Limits,
    kept: BTreeMap<i32, Kept>,
    /// What they take.
    bytes: usize,
    /// Loans so far.
    loans: u64,
    /// Sessions that gave way so far.
    evicted: u64,
}

#[derive(Debug)]
struct Kept {
    /// The epoch of the next request.
    epoch: i32,
    made_ms: i64,
    used_ms: i64,
    /// As of when it was last here.
    partitions: usize,
    bytes: usize,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Here(Session),
    /// With a request, by the loan's number.
    Lent(u64),
}

impl Sessions {
    /// None yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Judges a request's session id and epoch (F-702). A session that a whole request names is closed.
    ///
    /// # Errors
    /// `FetchSessionIdNotFound`; `InvalidFetchSessionEpoch`, also while another request goes by the session.
    pub fn begin(&mut self, id: i32, epoch: i32, now_ms: i64) -> Result<Begun, Refusal> {
        if matches!(epoch, -1 | 0) {
            self.close(id);
            return Ok(if epoch == 0 { Begun::Fresh } else { Begun::Alone });
        }
        let kept = self.kept.get_mut(&id).ok_or(Refusal::FetchSessionIdNotFound)?;
        let number = self.loans.saturating_add(1);
        if kept.epoch != epoch {
            return Err(Refusal::InvalidFetchSessionEpoch);
        }
        match std::mem::replace(&mut kept.place, Place::Lent(number)) {
            Place::Here(session) => {
                self.loans = number;
                kept.epoch = epoch.checked_add(1).unwrap_or(1);
                kept.used_ms = now_ms;
                Ok(Begun::Within(Loan { id, session, number }))
            }
            lent @ Place::Lent(_) => {
                kept.place = lent;
                Err(Refusal::InvalidFetchSessionEpoch)
            }
        }
    }

    /// Keeps a session whose partitions were all answered. Gives its id; 0 if there is no room (F-711).
    pub fn keep(&mut self, session: Session, now_ms: i64, mut draw: impl FnMut() -> i32) -> i32 {
        let (partitions, bytes) = (session.len(), session.bytes());
        if !self.make_room((partitions, bytes), 1, now_ms) {
            return 0;
        }
        let mut id = draw();
        while id <= 0 || self.kept.contains_key(&id) {
            id = draw();
        }
        self.bytes = self.bytes.saturating_add(bytes);
        let place = Place::Here(session);
        self.kept.insert(id, Kept { epoch: 1, made_ms: now_ms, used_ms: now_ms, partitions, bytes, place });
        id
    }

    /// Takes a session back with its request's answer. Gives the id to answer with: 0 if it has no partition left (F-710),
    /// has given way meanwhile, or has grown beyond what there is room for.
    pub fn give_back(&mut self, loan: Loan, now_ms: i64) -> i32 {
        let Loan { id, session, number } = loan;
        let Some(kept) = self.kept.get_mut(&id).filter(|kept| kept.is_lent_as(number)) else { return 0 };
        let (partitions, bytes) = (session.len(), session.bytes());
        // Out of the way of its own growth, and safe from giving way for it.
        self.bytes = self.bytes.saturating_sub(std::mem::take(&mut kept.bytes));
        (kept.partitions, kept.used_ms) = (usize::MAX, now_ms);
        if session.is_empty() || !self.make_room((partitions, bytes), 0, now_ms) {
            self.kept.remove(&id);
            return 0;
        }
        let Some(kept) = self.kept.get_mut(&id) else { return 0 };
        (kept.partitions, kept.bytes, kept.place) = (partitions, bytes, Place::Here(session));
        self.bytes = self.bytes.saturating_add(bytes);
        id
    }

    /// A session does not come back: its client hung up, and will name its partitions again.
    pub fn forfeit(&mut self, loan: &Loan) {
        if self.kept.get(&loan.id).is_some_and(|kept| kept.is_lent_as(loan.number)) {
            self.close(loan.id);
        }
    }

    fn close(&mut self, id: i32) {
        if let Some(kept) = self.kept.remove(&id) {
            self.bytes = self.bytes.saturating_sub(kept.bytes);
        }
    }

    /// Whether there is room for one more of this size, or can be made.
    fn make_room(&mut self, (partitions, bytes): (usize, usize), slots: usize, now_ms: i64) -> bool {
        let Limits { slots: most_slots, bytes: most_bytes, .. } = self.limits;
        if bytes > most_bytes / 8 {
            return false;
        }
        // Nobody gives way before it is known that enough do.
        let mut leaving = BTreeSet::new();
        let (mut count, mut held) = (self.kept.len(), self.bytes);
        while count.saturating_add(slots) > most_slots || held.saturating_add(bytes) > most_bytes {
            let Some((id, frees)) = self.weakest(partitions, now_ms, &leaving) else { return false };
            (count, held) = (count.saturating_sub(1), held.saturating_sub(frees));
            leaving.insert(id);
        }
        for id in leaving {
            self.evicted = self.evicted.saturating_add(1);
            self.close(id);
        }
        true
    }

    /// How many there are, and how many gave way so far.
    #[must_use]
    pub fn figures(&self) -> (usize, u64) {
        (self.kept.len(), self.evicted)
    }

    /// Who gives way: whoever was not used for longest, if that is long enough; else the smallest, if it is smaller than
    /// `partitions` and has had its time (F-711). Gives its id and what it holds, in bytes.
    fn weakest(&self, partitions: usize, now_ms: i64, leaving: &BTreeSet<i32>) -> Option<(i32, usize)> {
        let is_past = |moment_ms: i64| now_ms.saturating_sub(moment_ms) > self.limits.safe_ms;
        let stays = || self.kept.iter().filter(|(id, _)| !leaving.contains(id));
        let idle = stays().min_by_key(|(_, kept)| kept.used_ms).filter(|(_, kept)| is_past(kept.used_ms));
        let smaller = || {
            let had_time = stays().filter(|(_, kept)| kept.partitions < partitions && is_past(kept.made_ms));
            had_time.min_by_key(|(id, kept)| (kept.partitions, **id))
        };
        idle.or_else(smaller).map(|(id, kept)| (*id, kept.bytes))
    }
}

impl Kept {
    fn is_lent_as(&self, number: u64) -> bool {
        matches!(self.place, Place::Lent(lent) if lent == number)
    }
}

#[cfg(test)]
mod tests;

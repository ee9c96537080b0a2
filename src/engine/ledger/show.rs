//! What tools are shown of transactions (T-801 to T-814).

use super::Ledger;
use crate::engine::txn::work::Stage;
use crate::engine::txn::{State, Txn};
use crate::engine::{Now, Outcome, PartId, Producer, Refusal, TransactionalId};

/// Kafka's external names of a transactional id's state (T-010).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "Kafka's own names")]
pub enum Shown {
    Empty,
    Ongoing,
    PrepareCommit,
    PrepareAbort,
    CompleteCommit,
    CompleteAbort,
}

impl Shown {
    /// All of them, for filters and metrics.
    pub const ALL: [Self; 6] = [
        Self::Empty,
        Self::Ongoing,
        Self::PrepareCommit,
        Self::PrepareAbort,
        Self::CompleteCommit,
        Self::CompleteAbort,
    ];

    /// The exact spelling tools filter by (T-811).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Ongoing => "Ongoing",
            Self::PrepareCommit => "PrepareCommit",
            Self::PrepareAbort => "PrepareAbort",
            Self::CompleteCommit => "CompleteCommit",
            Self::CompleteAbort => "CompleteAbort",
        }
    }
}

/// One transactional id, described (T-802).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// The id.
    pub id: TransactionalId,
    /// Its state's name.
    pub state: Shown,
    /// Its owner.
    pub producer: Producer,
    /// Timeout in milliseconds.
    pub timeout_ms: i32,
    /// When it times out, on the monotonic clock, while Ongoing.
    pub deadline_mono_ms: Option<i64>,
    /// Start, wall clock; -1 if none was begun since the last InitProducerId (T-803).
    pub started_wall_ms: i64,
    /// Partitions: all while Ongoing; those still lacking a marker while one is owed.
    pub parts: Vec<PartId>,
    /// Groups whose offsets it carries.
    pub groups: Vec<crate::engine::GroupId>,
}

/// Which transactions are looked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Find {
    /// Those in these states; all if it is empty.
    pub states: Vec<Shown>,
    /// Those whose id begins with it.
    pub prefix: String,
    /// Those open for longer, in milliseconds.
    pub open_longer_than_ms: Option<i64>,
    /// So many of them.
    pub limit: usize,
}

impl Ledger {
    /// Those that are looked for, the one open for longest first, and how many there are.
    #[must_use]
    pub fn find_txns(&self, find: &Find, now: Now) -> (usize, Vec<Described>) {
        let mut found: Vec<(i64, &TransactionalId)> = (self.txns.iter())
            .filter(|(id, txn)| {
                let longer =
                    |ms: i64| txn.ongoing().is_some_and(|open| now.wall_ms.saturating_sub(open.started_wall_ms) > ms);
                id.as_str().starts_with(&find.prefix)
                    && (find.states.is_empty() || find.states.contains(&self.shown(id, txn)))
                    && find.open_longer_than_ms.is_none_or(longer)
            })
            .map(|(id, txn)| (txn.ongoing().map_or(i64::MAX, |open| open.started_wall_ms), id))
            .collect();
        let total = found.len();
        if find.limit < total {
            found.select_nth_unstable(find.limit);
            found.truncate(find.limit);
        }
        found.sort_unstable();
        let described = found.into_iter().filter_map(|(_, id)| Some(self.describe(id, self.txns.get(id)?)));
        (total, described.collect())
    }

    /// What is known of an id that an operator names.
    ///
    /// # Errors
    /// `TransactionalIdNotFound`.
    pub fn known_by_operator(&self, id: &TransactionalId) -> Result<&Txn, Refusal> {
        self.txns.get(id).ok_or(Refusal::TransactionalIdNotFound)
    }

    /// Describes one id.
    ///
    /// # Errors
    /// `InvalidRequest` for "", `TransactionalIdNotFound` for one never seen (T-801).
    pub fn describe_txn(&self, id: &TransactionalId) -> Result<Described, Refusal> {
        if id.is_empty() {
            return Err(Refusal::InvalidRequest);
        }
        let txn = self.txns.get(id).ok_or(Refusal::TransactionalIdNotFound)?;
        Ok(self.describe(id, txn))
    }

    /// Every id.
    pub fn describe_txns(&self) -> impl Iterator<Item = Described> + '_ {
        self.txns.iter().map(|(id, txn)| self.describe(id, txn))
    }

    /// The state's name alone; cheap.
    #[must_use]
    pub fn shown(&self, id: &TransactionalId, txn: &Txn) -> Shown {
        let owing = self.owing.get(id).is_some();
        match (&txn.state, owing) {
            (State::Empty, _) => Shown::Empty,
            (State::Ongoing(_), _) => Shown::Ongoing,
            (State::Ended { outcome: Outcome::Commit, .. }, true) => Shown::PrepareCommit,
            (State::Ended { outcome: Outcome::Abort, .. }, true) => Shown::PrepareAbort,
            (State::Ended { outcome: Outcome::Commit, .. }, false) => Shown::CompleteCommit,
            (State::Ended { outcome: Outcome::Abort, .. }, false) => Shown::CompleteAbort,
        }
    }

    fn describe(&self, id: &TransactionalId, txn: &Txn) -> Described {
        let (started_wall_ms, parts, groups) = match &txn.state {
            State::Empty => (-1, Vec::new(), Vec::new()),
            State::Ongoing(ongoing) => (
                ongoing.started_wall_ms,
                ongoing.parts.iter().copied().collect(),
                ongoing.groups.iter().cloned().collect(),
            ),
            State::Ended { started_wall_ms, .. } => (*started_wall_ms, self.parts_lacking_markers(id), Vec::new()),
        };
        Described {
            id: id.clone(),
            state: self.shown(id, txn),
            producer: txn.producer,
            timeout_ms: txn.timeout_ms,
            deadline_mono_ms: txn.deadline_mono_ms(),
            started_wall_ms,
            parts,
            groups,
        }
    }

    fn parts_lacking_markers(&self, id: &TransactionalId) -> Vec<PartId> {
        let owed = self.owing.get(id).and_then(|seq| self.owed.get(seq));
        let parts = owed.into_iter().flat_map(|owed| owed.parts.iter());
        parts.filter(|(_, part)| part.stage < Stage::Appended).map(|(part, _)| *part).collect()
    }
}

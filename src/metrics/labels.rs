//! The values labels may have. Enums, so that no label is ever taken from what a client sent, and each has its series
//! from the start.

use crate::config::ListenerName;
use crate::engine::Outcome;

/// A closed set of label values.
pub(super) trait Label: Copy + Ord + 'static {
    /// All of them.
    const ALL: &'static [Self];
    /// As it is exposed.
    fn text(self) -> &'static str;
}

macro_rules! labels {
    ($(
        $(#[$doc:meta])* $name:ident { $( $(#[$variant_doc:meta])* $variant:ident = $text:literal ),+ $(,)? }
    )+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $( $(#[$variant_doc])* $variant, )+ }

        impl Label for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }
    )+};
}

labels! {
    /// Why somebody was fenced.
    FencingReason {
        /// A new owner called `InitProducerId` while the old one had a transaction open.
        InitProducerId = "init_producer_id",
        /// A request came with an epoch that has been replaced.
        StaleEpoch = "stale_epoch",
        /// A marker came with a coordinator epoch that has been replaced.
        StaleCoordinatorEpoch = "stale_coordinator_epoch",
        /// The transaction ran out of time.
        TimeoutBump = "timeout_bump",
        /// The id had been forgotten for want of use.
        IdExpired = "id_expired",
        /// An operator ended it.
        Admin = "admin",
    }

    /// Who ended a transaction.
    EndReason {
        /// Its producer.
        Client = "client",
        /// Its time ran out.
        Timeout = "timeout",
        /// A new owner of its id.
        Fenced = "fenced",
        /// An operator.
        Admin = "admin",
        /// The broker, when it found it open at a start.
        Failover = "failover",
    }

    /// A transaction's state as tools are shown it.
    TransactionState {
        /// No transaction yet.
        Empty = "empty",
        /// Open.
        Ongoing = "ongoing",
        /// Decided, markers still to be written.
        PrepareCommit = "prepare_commit",
        /// Decided, markers still to be written.
        PrepareAbort = "prepare_abort",
        /// Over.
        CompleteCommit = "complete_commit",
        /// Over.
        CompleteAbort = "complete_abort",
    }

    /// Why a marker could not be written and is tried again.
    MarkerError {
        /// The disk is full.
        StorageFull = "storage_full",
        /// The partition is damaged; its marker is parked.
        PartitionDamaged = "partition_damaged",
        /// The partition is not loaded, or its mailbox is full.
        PartitionBusy = "partition_busy",
        /// Anything else.
        Other = "other",
    }

    /// Why a producer's batch was refused.
    SequenceError {
        /// A sequence is missing or comes twice.
        OutOfOrder = "out_of_order",
        /// The partition does not know the producer.
        UnknownProducer = "unknown_producer",
        /// The epoch has been replaced.
        InvalidEpoch = "invalid_epoch",
        /// No transaction is open for it here.
        InvalidTxnState = "invalid_txn_state",
        /// The transaction is being ended.
        Concurrent = "concurrent",
    }

    /// What was synced.
    SyncedFile {
        /// A partition's log.
        Log = "log",
        /// The ledger, `meta.db`.
        Ledger = "ledger",
    }
}

impl Label for ListenerName {
    const ALL: &'static [Self] = &[Self::External, Self::Internal];

    fn text(self) -> &'static str {
        self.as_str()
    }
}

impl Label for Outcome {
    const ALL: &'static [Self] = &[Self::Commit, Self::Abort];

    fn text(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Abort => "abort",
        }
    }
}

//! The values labels may have. Enums, so that no label is taken from what a client sent, and each has its series from the
//! start. Names of topics and groups are the exception, with a cap each (`topics`, `traffic`, `groups`).

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

    /// What became of a marker that was to be written.
    MarkerResult {
        /// It is in the log.
        Ok = "ok",
        /// It could not be written; it is tried again.
        Error = "error",
    }

    /// A part of the way from EndTxn to the transaction's end.
    Phase {
        /// From being asked to the decision being stored: partitions are sealed, and a commit's records synced.
        Prepare = "prepare",
        /// From there to every marker being written, as far as the answer waits for it.
        Markers = "markers",
        /// From there to every marker being on disk.
        Complete = "complete",
    }

    /// What the coordinator said of a producer that a partition did not know.
    Verified {
        /// It may write.
        Ok = "ok",
        /// It may not.
        Refused = "refused",
    }

    /// What must never be.
    Invariant {
        /// A transaction open in a log that the ledger knows nothing of.
        OrphanTransaction = "orphan_transaction",
        /// A last stable offset above its watermark.
        StableAboveWatermark = "stable_above_watermark",
        /// A watermark that was lower than before.
        WatermarkMovedBack = "watermark_moved_back",
    }

    /// What an operator did by the admin port.
    OperatorAction {
        /// Aborted a transaction.
        Abort = "abort",
        /// Fenced the owner of a transactional id.
        Fence = "fence",
    }

    /// A group's state, as tools are shown it.
    GroupState {
        /// No members.
        Empty = "empty",
        /// Members are joining.
        PreparingRebalance = "preparing_rebalance",
        /// The leader's assignment is awaited.
        CompletingRebalance = "completing_rebalance",
        /// At work.
        Stable = "stable",
    }

    /// Which end of a partition a group's lag is counted to.
    LagTo {
        /// What read_committed members may have.
        LastStableOffset = "last_stable_offset",
        /// What all others may have.
        Watermark = "watermark",
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

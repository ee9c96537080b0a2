//! The version table: every API that is offered, in which versions. The only place that knows.

use std::fmt;

/// How a request stands to its neighbours on the same connection (V-131, V-133).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// May be started while earlier requests of the same kind are unanswered; a producer's batches then share a sync.
    Ahead,
    /// Starts when everything before it is answered, and holds back what is behind it.
    Alone,
}

/// One row of the version table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// The lowest version that ApiVersions lists.
    pub listed: i16,
    /// The lowest version that is served; a lower one closes the connection (V-104). Only Produce lists more than it
    /// serves (T-001, V-124).
    pub lowest: i16,
    /// The highest version, listed and served.
    pub highest: i16,
    /// The first version with compact lengths and tag sections, in body and headers (KIP-482); above `highest` when
    /// no offered version has them.
    pub flexible: i16,
    /// Whether requests may run ahead of unanswered ones.
    pub order: Order,
}

macro_rules! apis {
    ($($name:ident = $key:literal: listed $listed:literal, served $lowest:literal ..= $highest:literal,
       flexible $flexible:literal, $order:ident;)+) => {
        /// An API that is offered, by Kafka's own name; its number is the key on the wire.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i16)]
        pub enum Api {
            $(#[doc = concat!("Key ", stringify!($key), ".")] $name = $key,)+
        }

        impl Api {
            /// Every API, in the order of the keys.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// The API with this key, if it is offered.
            #[must_use]
            pub const fn from_key(key: i16) -> Option<Self> {
                match key {
                    $($key => Some(Self::$name),)+
                    _ => None,
                }
            }

            /// The key on the wire.
            #[must_use]
            pub const fn key(self) -> i16 {
                match self {
                    $(Self::$name => $key,)+
                }
            }

            /// Kafka's name, as metrics and logs show it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                }
            }

            /// This API's row of the table.
            #[must_use]
            pub const fn versions(self) -> Versions {
                match self {
                    $(Self::$name => Versions {
                        listed: $listed,
                        lowest: $lowest,
                        highest: $highest,
                        flexible: $flexible,
                        order: Order::$order,
                    },)+
                }
            }
        }
    };
}

// The highest versions are those of a broker of the classic protocols, short of `transaction.version` 2, of KIP-848
// members and of topic ids in requests: Metadata 10 to 12 carry ids in requests (M-205), Fetch 13 and Produce 13 name
// topics by id only, DeleteTopics 6 may. CreateTopics 7 has the id in its answer alone.
apis! {
    Produce = 0: listed 0, served 3..=9, flexible 9, Ahead;
    Fetch = 1: listed 4, served 4..=12, flexible 12, Alone;
    ListOffsets = 2: listed 1, served 1..=8, flexible 6, Alone;
    Metadata = 3: listed 0, served 0..=9, flexible 9, Alone;
    OffsetCommit = 8: listed 2, served 2..=8, flexible 8, Alone;
    OffsetFetch = 9: listed 1, served 1..=8, flexible 6, Alone;
    FindCoordinator = 10: listed 0, served 0..=4, flexible 3, Alone;
    JoinGroup = 11: listed 0, served 0..=9, flexible 6, Alone;
    Heartbeat = 12: listed 0, served 0..=4, flexible 4, Alone;
    LeaveGroup = 13: listed 0, served 0..=5, flexible 4, Alone;
    SyncGroup = 14: listed 0, served 0..=5, flexible 4, Alone;
    DescribeGroups = 15: listed 0, served 0..=6, flexible 5, Alone;
    ListGroups = 16: listed 0, served 0..=5, flexible 3, Alone;
    ApiVersions = 18: listed 0, served 0..=3, flexible 3, Alone;
    CreateTopics = 19: listed 2, served 2..=7, flexible 5, Alone;
    DeleteTopics = 20: listed 1, served 1..=5, flexible 4, Alone;
    DeleteRecords = 21: listed 0, served 0..=2, flexible 2, Alone;
    InitProducerId = 22: listed 0, served 0..=4, flexible 2, Alone;
    OffsetForLeaderEpoch = 23: listed 2, served 2..=4, flexible 4, Alone;
    AddPartitionsToTxn = 24: listed 0, served 0..=3, flexible 3, Alone;
    AddOffsetsToTxn = 25: listed 0, served 0..=3, flexible 3, Alone;
    EndTxn = 26: listed 0, served 0..=3, flexible 3, Alone;
    WriteTxnMarkers = 27: listed 1, served 1..=1, flexible 1, Alone;
    TxnOffsetCommit = 28: listed 0, served 0..=3, flexible 3, Alone;
    DescribeConfigs = 32: listed 1, served 1..=4, flexible 4, Alone;
    AlterConfigs = 33: listed 0, served 0..=2, flexible 2, Alone;
    DescribeLogDirs = 35: listed 1, served 1..=4, flexible 2, Alone;
    CreatePartitions = 37: listed 0, served 0..=3, flexible 2, Alone;
    DeleteGroups = 42: listed 0, served 0..=2, flexible 2, Alone;
    IncrementalAlterConfigs = 44: listed 0, served 0..=1, flexible 1, Alone;
    OffsetDelete = 47: listed 0, served 0..=0, flexible 1, Alone;
    DescribeCluster = 60: listed 0, served 0..=1, flexible 0, Alone;
    DescribeProducers = 61: listed 0, served 0..=0, flexible 0, Alone;
    DescribeTransactions = 65: listed 0, served 0..=0, flexible 0, Alone;
    ListTransactions = 66: listed 0, served 0..=0, flexible 0, Alone;
}

impl Api {
    /// Whether requests of this version are served.
    #[must_use]
    pub const fn serves(self, version: i16) -> bool {
        let versions = self.versions();
        versions.lowest <= version && version <= versions.highest
    }

    /// Whether this version has compact lengths and tag sections, hence request header 2 (V-102).
    #[must_use]
    pub const fn is_flexible(self, version: i16) -> bool {
        version >= self.versions().flexible
    }

    /// Whether the response header of this version ends in a tag section; that of ApiVersions never does (V-103).
    #[must_use]
    pub const fn has_response_tags(self, version: i16) -> bool {
        self.is_flexible(version) && !matches!(self, Self::ApiVersions)
    }

    /// Whether a client of this version understands PRODUCER_FENCED (90); others, Produce and TxnOffsetCommit in
    /// every version, are told INVALID_PRODUCER_EPOCH (47) (T-116, T-243, T-251, T-361; KIP-588).
    #[must_use]
    pub const fn knows_producer_fenced(self, version: i16) -> bool {
        match self {
            Self::InitProducerId => version >= 4,
            Self::AddPartitionsToTxn | Self::AddOffsetsToTxn | Self::EndTxn => version >= 2,
            Self::Produce
            | Self::Fetch
            | Self::ListOffsets
            | Self::Metadata
            | Self::OffsetCommit
            | Self::OffsetFetch
            | Self::FindCoordinator
            | Self::JoinGroup
            | Self::Heartbeat
            | Self::LeaveGroup
            | Self::SyncGroup
            | Self::DescribeGroups
            | Self::ListGroups
            | Self::ApiVersions
            | Self::CreateTopics
            | Self::DeleteTopics
            | Self::DeleteRecords
            | Self::OffsetForLeaderEpoch
            | Self::WriteTxnMarkers
            | Self::TxnOffsetCommit
            | Self::DescribeConfigs
            | Self::AlterConfigs
            | Self::DescribeLogDirs
            | Self::CreatePartitions
            | Self::DeleteGroups
            | Self::IncrementalAlterConfigs
            | Self::OffsetDelete
            | Self::DescribeCluster
            | Self::DescribeProducers
            | Self::DescribeTransactions
            | Self::ListTransactions => false,
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests;

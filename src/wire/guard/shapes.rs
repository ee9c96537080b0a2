//! The shapes of request bodies: every field in its order, with the versions that have it.

use crate::wire::apis::Api;

/// What a field is made of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// This many bytes.
    Fixed(usize),
    /// A string.
    Text,
    /// Bytes with their length in front.
    Blob,
    /// An array of values of this many bytes each.
    FixedList(usize),
    /// An array of strings.
    TextList,
    /// An array of structs.
    List(&'static Shape),
}

/// A field and the versions that have it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) kind: Kind,
    pub(super) since: i16,
    pub(super) until: i16,
    /// The first version in which it may be null.
    pub(super) null_since: i16,
}

/// A struct: its fields, and the tagged ones we know by number.
#[derive(Debug)]
pub(super) struct Shape {
    fields: &'static [Field],
    pub(super) tags: &'static [(u32, Field)],
}

impl Shape {
    pub(super) fn fields_in(&self, version: i16) -> impl Iterator<Item = &'static Field> + use<> {
        self.fields.iter().filter(move |field| field.since <= version && version <= field.until)
    }

    /// The fewest bytes that a value of this shape takes on the wire.
    pub(super) fn least_bytes(&self, version: i16, flexible: bool) -> usize {
        let fields: usize = self
            .fields_in(version)
            .map(|field| match field.kind {
                Kind::Fixed(width) => width,
                Kind::Text | Kind::Blob | Kind::FixedList(_) | Kind::TextList | Kind::List(_) if flexible => 1,
                Kind::Text => 2,
                Kind::Blob | Kind::FixedList(_) | Kind::TextList | Kind::List(_) => 4,
            })
            .sum();
        fields.saturating_add(usize::from(flexible))
    }
}

impl Field {
    const fn of(kind: Kind) -> Self {
        Self { kind, since: 0, until: i16::MAX, null_since: i16::MAX }
    }

    const fn since(mut self, version: i16) -> Self {
        self.since = version;
        self
    }

    const fn until(mut self, version: i16) -> Self {
        self.until = version;
        self
    }

    /// May be null in every version.
    const fn nullable(self) -> Self {
        self.null_since(0)
    }

    const fn null_since(mut self, version: i16) -> Self {
        self.null_since = version;
        self
    }
}

const BYTE: Field = Field::of(Kind::Fixed(1));
const SHORT: Field = Field::of(Kind::Fixed(2));
const INT: Field = Field::of(Kind::Fixed(4));
const LONG: Field = Field::of(Kind::Fixed(8));
const TEXT: Field = Field::of(Kind::Text);
const BLOB: Field = Field::of(Kind::Blob);
const INTS: Field = Field::of(Kind::FixedList(4));
const LONGS: Field = Field::of(Kind::FixedList(8));
const TEXTS: Field = Field::of(Kind::TextList);

const fn list(shape: &'static Shape) -> Field {
    Field::of(Kind::List(shape))
}

const fn shape(fields: &'static [Field]) -> Shape {
    Shape { fields, tags: &[] }
}

/// The shape of an API's request body.
pub(super) const fn of(api: Api) -> &'static Shape {
    match api {
        Api::Produce => &PRODUCE,
        Api::Fetch => &FETCH,
        Api::ListOffsets => &LIST_OFFSETS,
        Api::Metadata => &METADATA,
        Api::OffsetCommit => &OFFSET_COMMIT,
        Api::OffsetFetch => &OFFSET_FETCH,
        Api::FindCoordinator => &FIND_COORDINATOR,
        Api::JoinGroup => &JOIN_GROUP,
        Api::Heartbeat => &HEARTBEAT,
        Api::LeaveGroup => &LEAVE_GROUP,
        Api::SyncGroup => &SYNC_GROUP,
        Api::DescribeGroups => &DESCRIBE_GROUPS,
        Api::ListGroups => &LIST_GROUPS,
        Api::ApiVersions => &API_VERSIONS,
        Api::CreateTopics => &CREATE_TOPICS,
        Api::DeleteTopics => &DELETE_TOPICS,
        Api::DeleteRecords => &DELETE_RECORDS,
        Api::InitProducerId => &INIT_PRODUCER_ID,
        Api::OffsetForLeaderEpoch => &OFFSET_FOR_LEADER_EPOCH,
        Api::AddPartitionsToTxn => &ADD_PARTITIONS_TO_TXN,
        Api::AddOffsetsToTxn => &ADD_OFFSETS_TO_TXN,
        Api::EndTxn => &END_TXN,
        Api::WriteTxnMarkers => &WRITE_TXN_MARKERS,
        Api::TxnOffsetCommit => &TXN_OFFSET_COMMIT,
        Api::DescribeConfigs => &DESCRIBE_CONFIGS,
        Api::AlterConfigs => &ALTER_CONFIGS,
        Api::DescribeLogDirs => &DESCRIBE_LOG_DIRS,
        Api::CreatePartitions => &CREATE_PARTITIONS,
        Api::DeleteGroups => &DELETE_GROUPS,
        Api::IncrementalAlterConfigs => &INCREMENTAL_ALTER_CONFIGS,
        Api::OffsetDelete => &OFFSET_DELETE,
        Api::DescribeCluster => &DESCRIBE_CLUSTER,
        Api::DescribeProducers => &DESCRIBE_PRODUCERS,
        Api::DescribeTransactions => &DESCRIBE_TRANSACTIONS,
        Api::ListTransactions => &LIST_TRANSACTIONS,
    }
}

// Transactional id, acks, timeout, topics.
const PRODUCE: Shape = shape(&[TEXT.nullable(), SHORT, INT, list(&PRODUCE_TOPIC)]);
const PRODUCE_TOPIC: Shape = shape(&[TEXT, list(&PRODUCE_PARTITION)]);
const PRODUCE_PARTITION: Shape = shape(&[INT, BLOB.nullable()]);

// Replica, longest wait, least bytes, most bytes, isolation, session and its epoch, topics, forgotten topics, rack.
const FETCH: Shape = Shape {
    fields: &[
        INT,
        INT,
        INT,
        INT,
        BYTE,
        INT.since(7),
        INT.since(7),
        list(&FETCH_TOPIC),
        list(&FORGOTTEN_TOPIC).since(7),
        TEXT.since(11),
    ],
    // The cluster id.
    tags: &[(0, TEXT.nullable())],
};
const FETCH_TOPIC: Shape = shape(&[TEXT, list(&FETCH_PARTITION)]);
// Partition, leader epoch, offset, last fetched epoch, log start, most bytes.
const FETCH_PARTITION: Shape = shape(&[INT, INT.since(9), LONG, INT.since(12), LONG.since(5), INT]);
const FORGOTTEN_TOPIC: Shape = shape(&[TEXT, INTS]);

// Replica, isolation, topics.
const LIST_OFFSETS: Shape = shape(&[INT, BYTE.since(2), list(&LIST_OFFSETS_TOPIC)]);
const LIST_OFFSETS_TOPIC: Shape = shape(&[TEXT, list(&LIST_OFFSETS_PARTITION)]);
// Partition, leader epoch, timestamp.
const LIST_OFFSETS_PARTITION: Shape = shape(&[INT, INT.since(4), LONG]);

// Topics (null from 1: M-204, V-108), auto-creation, authorized operations of cluster and topics.
const METADATA: Shape =
    shape(&[list(&METADATA_TOPIC).null_since(1), BYTE.since(4), BYTE.since(8).until(10), BYTE.since(8)]);
const METADATA_TOPIC: Shape = shape(&[TEXT]);

// Group, generation, member, instance, retention, topics.
const OFFSET_COMMIT: Shape =
    shape(&[TEXT, INT, TEXT, TEXT.since(7).nullable(), LONG.until(4), list(&OFFSET_COMMIT_TOPIC)]);
const OFFSET_COMMIT_TOPIC: Shape = shape(&[TEXT, list(&OFFSET_COMMIT_PARTITION)]);
// Partition, offset, leader epoch, metadata.
const OFFSET_COMMIT_PARTITION: Shape = shape(&[INT, LONG, INT.since(6), TEXT.nullable()]);

// One group and its topics (null from 2: V-108), or several groups, then whether offsets must be stable.
const OFFSET_FETCH: Shape = shape(&[
    TEXT.until(7),
    list(&OFFSET_FETCH_TOPIC).until(7).null_since(2),
    list(&OFFSET_FETCH_GROUP).since(8),
    BYTE.since(7),
]);
const OFFSET_FETCH_TOPIC: Shape = shape(&[TEXT, INTS]);
const OFFSET_FETCH_GROUP: Shape = shape(&[TEXT, list(&OFFSET_FETCH_TOPIC).nullable()]);

// Key, kind of key, keys.
const FIND_COORDINATOR: Shape = shape(&[TEXT.until(3), BYTE.since(1), TEXTS.since(4)]);

// Group, session and rebalance timeouts, member, instance, kind of protocol, protocols, reason.
const JOIN_GROUP: Shape = shape(&[
    TEXT,
    INT,
    INT.since(1),
    TEXT,
    TEXT.since(5).nullable(),
    TEXT,
    list(&JOIN_GROUP_PROTOCOL),
    TEXT.since(8).nullable(),
]);
const JOIN_GROUP_PROTOCOL: Shape = shape(&[TEXT, BLOB]);

// Group, generation, member, instance.
const HEARTBEAT: Shape = shape(&[TEXT, INT, TEXT, TEXT.since(3).nullable()]);

// Group, then one member or several.
const LEAVE_GROUP: Shape = shape(&[TEXT, TEXT.until(2), list(&LEAVE_GROUP_MEMBER).since(3)]);
// Member, instance, reason.
const LEAVE_GROUP_MEMBER: Shape = shape(&[TEXT, TEXT.nullable(), TEXT.since(5).nullable()]);

// Group, generation, member, instance, kind and name of the protocol, assignments.
const SYNC_GROUP: Shape = shape(&[
    TEXT,
    INT,
    TEXT,
    TEXT.since(3).nullable(),
    TEXT.since(5).nullable(),
    TEXT.since(5).nullable(),
    list(&SYNC_GROUP_ASSIGNMENT),
]);
const SYNC_GROUP_ASSIGNMENT: Shape = shape(&[TEXT, BLOB]);

// Groups, authorized operations.
const DESCRIBE_GROUPS: Shape = shape(&[TEXTS, BYTE.since(3)]);

// States, types.
const LIST_GROUPS: Shape = shape(&[TEXTS.since(4), TEXTS.since(5)]);

// The client software's name and version.
const API_VERSIONS: Shape = shape(&[TEXT.since(3), TEXT.since(3)]);

// Topics, timeout, validate only.
const CREATE_TOPICS: Shape = shape(&[list(&CREATE_TOPICS_TOPIC), INT, BYTE]);
// Name, partitions, replication factor, assignments, settings.
const CREATE_TOPICS_TOPIC: Shape =
    shape(&[TEXT, INT, SHORT, list(&CREATE_TOPICS_ASSIGNMENT), list(&CREATE_TOPICS_SETTING)]);
const CREATE_TOPICS_ASSIGNMENT: Shape = shape(&[INT, INTS]);
const CREATE_TOPICS_SETTING: Shape = shape(&[TEXT, TEXT.nullable()]);

// Names, timeout.
const DELETE_TOPICS: Shape = shape(&[TEXTS, INT]);

// Topics, timeout.
const DELETE_RECORDS: Shape = shape(&[list(&DELETE_RECORDS_TOPIC), INT]);
const DELETE_RECORDS_TOPIC: Shape = shape(&[TEXT, list(&DELETE_RECORDS_PARTITION)]);
// Partition, first offset that stays.
const DELETE_RECORDS_PARTITION: Shape = shape(&[INT, LONG]);

// Transactional id, timeout, producer id and epoch.
const INIT_PRODUCER_ID: Shape = shape(&[TEXT.nullable(), INT, LONG.since(3), SHORT.since(3)]);

// Replica, topics.
const OFFSET_FOR_LEADER_EPOCH: Shape = shape(&[INT.since(3), list(&OFFSET_FOR_LEADER_TOPIC)]);
const OFFSET_FOR_LEADER_TOPIC: Shape = shape(&[TEXT, list(&OFFSET_FOR_LEADER_PARTITION)]);
// Partition, current epoch, epoch asked for.
const OFFSET_FOR_LEADER_PARTITION: Shape = shape(&[INT, INT, INT]);

// Transactional id, producer id and epoch, topics.
const ADD_PARTITIONS_TO_TXN: Shape = shape(&[TEXT, LONG, SHORT, list(&ADD_PARTITIONS_TOPIC)]);
const ADD_PARTITIONS_TOPIC: Shape = shape(&[TEXT, INTS]);

// Transactional id, producer id and epoch, group.
const ADD_OFFSETS_TO_TXN: Shape = shape(&[TEXT, LONG, SHORT, TEXT]);

// Transactional id, producer id and epoch, committed.
const END_TXN: Shape = shape(&[TEXT, LONG, SHORT, BYTE]);

const WRITE_TXN_MARKERS: Shape = shape(&[list(&WRITE_TXN_MARKER)]);
// Producer id and epoch, committed, topics, coordinator epoch.
const WRITE_TXN_MARKER: Shape = shape(&[LONG, SHORT, BYTE, list(&WRITE_TXN_MARKER_TOPIC), INT]);
const WRITE_TXN_MARKER_TOPIC: Shape = shape(&[TEXT, INTS]);

// Transactional id, group, producer id and epoch, generation, member, instance, topics.
const TXN_OFFSET_COMMIT: Shape = shape(&[
    TEXT,
    TEXT,
    LONG,
    SHORT,
    INT.since(3),
    TEXT.since(3),
    TEXT.since(3).nullable(),
    list(&TXN_OFFSET_COMMIT_TOPIC),
]);
const TXN_OFFSET_COMMIT_TOPIC: Shape = shape(&[TEXT, list(&TXN_OFFSET_COMMIT_PARTITION)]);
// Partition, offset, leader epoch, metadata.
const TXN_OFFSET_COMMIT_PARTITION: Shape = shape(&[INT, LONG, INT.since(2), TEXT.nullable()]);

// Resources, synonyms, documentation.
const DESCRIBE_CONFIGS: Shape = shape(&[list(&DESCRIBE_CONFIGS_RESOURCE), BYTE, BYTE.since(3)]);
// Kind, name, keys.
const DESCRIBE_CONFIGS_RESOURCE: Shape = shape(&[BYTE, TEXT, TEXTS.nullable()]);

// Resources, validate only.
const ALTER_CONFIGS: Shape = shape(&[list(&ALTER_CONFIGS_RESOURCE), BYTE]);
// Kind, name, settings.
const ALTER_CONFIGS_RESOURCE: Shape = shape(&[BYTE, TEXT, list(&ALTER_CONFIGS_SETTING)]);
const ALTER_CONFIGS_SETTING: Shape = shape(&[TEXT, TEXT.nullable()]);

// Topics, timeout, validate only.
const CREATE_PARTITIONS: Shape = shape(&[list(&CREATE_PARTITIONS_TOPIC), INT, BYTE]);
// Name, count, assignments.
const CREATE_PARTITIONS_TOPIC: Shape = shape(&[TEXT, INT, list(&CREATE_PARTITIONS_ASSIGNMENT).nullable()]);
const CREATE_PARTITIONS_ASSIGNMENT: Shape = shape(&[INTS]);

const DELETE_GROUPS: Shape = shape(&[TEXTS]);

// Resources, validate only.
const INCREMENTAL_ALTER_CONFIGS: Shape = shape(&[list(&INCREMENTAL_ALTER_CONFIGS_RESOURCE), BYTE]);
// Kind, name, settings.
const INCREMENTAL_ALTER_CONFIGS_RESOURCE: Shape = shape(&[BYTE, TEXT, list(&INCREMENTAL_ALTER_CONFIGS_SETTING)]);
// Name, operation, value.
const INCREMENTAL_ALTER_CONFIGS_SETTING: Shape = shape(&[TEXT, BYTE, TEXT.nullable()]);

// Group, topics.
const OFFSET_DELETE: Shape = shape(&[TEXT, list(&OFFSET_DELETE_TOPIC)]);
const OFFSET_DELETE_TOPIC: Shape = shape(&[TEXT, INTS]);

// Topics; null for all.
const DESCRIBE_LOG_DIRS: Shape = shape(&[list(&DESCRIBE_LOG_DIRS_TOPIC).nullable()]);
const DESCRIBE_LOG_DIRS_TOPIC: Shape = shape(&[TEXT, INTS]);

// Authorized operations, kind of endpoint.
const DESCRIBE_CLUSTER: Shape = shape(&[BYTE, BYTE.since(1)]);

const DESCRIBE_PRODUCERS: Shape = shape(&[list(&DESCRIBE_PRODUCERS_TOPIC)]);
const DESCRIBE_PRODUCERS_TOPIC: Shape = shape(&[TEXT, INTS]);

const DESCRIBE_TRANSACTIONS: Shape = shape(&[TEXTS]);

// States, producer ids.
const LIST_TRANSACTIONS: Shape = shape(&[TEXTS, LONGS]);

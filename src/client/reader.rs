//! Reading: what a consumer of either isolation is shown.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::{BrokerId, FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse};

use super::cluster::{Whom, text};
use super::{Cluster, Failure, Part, records};
use crate::engine::Outcome;
use crate::engine::batch::marker;

/// What a reader is shown of transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// All records.
    ReadUncommitted,
    /// Records of committed transactions, and those that belong to none.
    ReadCommitted,
}

/// A place in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// Its first record.
    Start,
    /// Its end, as the isolation has it.
    End,
}

/// What was read of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// Which.
    pub part: Part,
    /// Where to read on.
    pub next: i64,
    /// The end of what a reader of this isolation may have.
    pub end: i64,
    /// How many records a consumer is shown.
    pub shown: u64,
    /// Offsets and values of those that are not compressed.
    pub values: Vec<(i64, String)>,
}

/// What leaders remember of a reader who comes again and again: they leave out of their answers what has not changed
/// (KIP-227). One id and epoch for each node; nothing where none is kept.
#[derive(Debug, Default)]
pub struct Session(BTreeMap<i32, (i32, i32)>);

impl Session {
    /// Other partitions are read from now on: leaders are told all of them anew.
    pub fn renew(&mut self) {
        self.0.values_mut().for_each(|(_, epoch)| *epoch = 0);
    }

    /// What the next answer of `node` is to be part of.
    fn of(&self, node: i32) -> (i32, i32) {
        self.0.get(&node).copied().unwrap_or((0, 0))
    }

    fn answered(&mut self, node: i32, answer: &FetchResponse) {
        let (_, epoch) = self.of(node);
        match answer.session_id {
            0 => self.0.remove(&node),
            // The numbers go round, and 0 begins anew.
            id => self.0.insert(node, (id, epoch.checked_add(1).unwrap_or(1))),
        };
    }
}

/// No session: the answer is whole.
const WHOLE: (i32, i32) = (0, -1);
const FETCH_SESSION_ID_NOT_FOUND: i16 = 70;
const INVALID_FETCH_SESSION_EPOCH: i16 = 71;

/// Most bytes of one answer, and of one partition in it.
const MAX_BYTES: i32 = 1 << 20;

impl Isolation {
    const fn level(self) -> i8 {
        match self {
            Self::ReadUncommitted => 0,
            Self::ReadCommitted => 1,
        }
    }
}

impl Cluster {
    /// Where a partition begins or ends.
    ///
    /// # Errors
    /// As [`Cluster::insist`].
    pub async fn offset(&mut self, part: &Part, isolation: Isolation, at: Position) -> Result<i64, Failure> {
        let timestamp = match at {
            Position::Start => -2,
            Position::End => -1,
        };
        let own = ListOffsetsPartition::default().with_partition_index(part.index).with_timestamp(timestamp);
        let topic = ListOffsetsTopic::default().with_name(text(&part.topic).into()).with_partitions(vec![own]);
        let request = ListOffsetsRequest::default()
            .with_replica_id(BrokerId(-1))
            .with_isolation_level(isolation.level())
            .with_topics(vec![topic]);
        let result = |answer: &ListOffsetsResponse| {
            let own = answer.topics.first().and_then(|topic| topic.partitions.first());
            own.map_or((-1, -1), |own| (own.error_code, own.offset))
        };
        let whom = Whom::Leader(part.clone());
        Ok(result(&self.insist(&whom, (2..=7, &request), |answer| result(answer).0).await?).1)
    }

    /// Reads on in these partitions. Where there is nothing new it is waited for, but not longer than `wait`.
    ///
    /// # Errors
    /// As [`Cluster::insist`]; bytes that are no record batches.
    pub async fn read(
        &mut self,
        from: &BTreeMap<Part, i64>,
        isolation: Isolation,
        wait: Duration,
    ) -> Result<Vec<Read>, Failure> {
        let mut all = Vec::new();
        for (leader, wanted) in self.by_leader(from).await? {
            let answer = self.ask_node(leader, 4..=12, &request(&wanted, isolation, (wait, WHOLE))).await?;
            refused(answer.error_code)?;
            for (part, offset) in wanted {
                let read = self.taken(part, offset, isolation, &answer)?;
                all.push(read.ok_or_else(|| Failure::foreign("Fetch", "a partition is left out"))?);
            }
        }
        Ok(all)
    }

    /// As [`Cluster::read`], for who reads the same partitions again and again; those where nothing is new are left out.
    ///
    /// # Errors
    /// As [`Cluster::read`].
    pub async fn read_on(
        &mut self,
        session: &mut Session,
        from: &BTreeMap<Part, i64>,
        (isolation, wait): (Isolation, Duration),
    ) -> Result<Vec<Read>, Failure> {
        let mut all = Vec::new();
        for (leader, wanted) in self.by_leader(from).await? {
            let asked = request(&wanted, isolation, (wait, session.of(leader)));
            let answer = self.ask_node(leader, 7..=12, &asked).await?;
            if matches!(answer.error_code, FETCH_SESSION_ID_NOT_FOUND | INVALID_FETCH_SESSION_EPOCH) {
                session.0.remove(&leader);
                continue;
            }
            refused(answer.error_code)?;
            session.answered(leader, &answer);
            for (part, offset) in wanted {
                all.extend(self.taken(part, offset, isolation, &answer)?);
            }
        }
        Ok(all)
    }

    async fn by_leader<'a>(
        &mut self,
        from: &'a BTreeMap<Part, i64>,
    ) -> Result<BTreeMap<i32, Vec<(&'a Part, i64)>>, Failure> {
        let mut by_leader: BTreeMap<i32, Vec<(&Part, i64)>> = BTreeMap::new();
        for (part, offset) in from {
            let leader = self.find(&Whom::Leader(part.clone())).await?;
            by_leader.entry(leader).or_default().push((part, *offset));
        }
        Ok(by_leader)
    }

    /// What the answer says of a partition, if it says anything.
    fn taken(
        &mut self,
        part: &Part,
        offset: i64,
        isolation: Isolation,
        answer: &FetchResponse,
    ) -> Result<Option<Read>, Failure> {
        let topics = answer.responses.iter().filter(|topic| topic.topic.as_str() == &*part.topic);
        let own = topics.flat_map(|topic| &topic.partitions).find(|own| own.partition_index == part.index);
        let Some(own) = own else { return Ok(None) };
        refused(own.error_code).inspect_err(|_| self.forget(&Whom::Leader(part.clone())))?;
        let end = match isolation {
            Isolation::ReadUncommitted => own.high_watermark,
            Isolation::ReadCommitted => own.last_stable_offset,
        };
        let mut read = Read { part: part.clone(), next: offset, end, shown: 0, values: Vec::new() };
        show(own, isolation, &mut read).map_err(|why| Failure::foreign("Fetch", why))?;
        Ok(Some(read))
    }
}

fn refused(code: i16) -> Result<(), Failure> {
    if code == 0 { Ok(()) } else { Err(Failure::Refused { what: "Fetch", code }) }
}

fn request(
    wanted: &[(&Part, i64)],
    isolation: Isolation,
    (wait, (session_id, session_epoch)): (Duration, (i32, i32)),
) -> FetchRequest {
    let topic = |(part, offset): &(&Part, i64)| {
        let own = FetchPartition::default().with_partition(part.index).with_fetch_offset(*offset);
        let own = own.with_partition_max_bytes(MAX_BYTES);
        FetchTopic::default().with_topic(text(&part.topic).into()).with_partitions(vec![own])
    };
    FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_wait_ms(i32::try_from(wait.as_millis()).unwrap_or(i32::MAX))
        .with_min_bytes(1)
        .with_max_bytes(MAX_BYTES)
        .with_isolation_level(isolation.level())
        .with_session_id(session_id)
        .with_session_epoch(session_epoch)
        .with_topics(wanted.iter().map(topic).collect())
}

/// Leaves out markers and, for who reads committed, the records of aborted transactions (KIP-98).
fn show(own: &PartitionData, isolation: Isolation, read: &mut Read) -> Result<(), &'static str> {
    let listed = own.aborted_transactions.iter().flatten();
    let mut begins: Vec<(i64, i64)> = listed.map(|txn| (txn.first_offset, txn.producer_id.0)).collect();
    begins.sort_unstable();
    let mut begins = begins.into_iter().peekable();
    let mut aborting = BTreeSet::new();
    let mut bytes: Bytes = own.records.clone().unwrap_or_default();
    let from = read.next;
    while let Some((header, batch)) = records::next(&mut bytes)? {
        while let Some((_, producer)) = begins.next_if(|(first, _)| *first <= header.last_offset()) {
            aborting.insert(producer);
        }
        read.next = read.next.max(header.next_offset());
        if header.is_control() {
            if marker::read(&batch).is_some_and(|marker| marker.outcome == Some(Outcome::Abort)) {
                aborting.remove(&header.producer_id);
            }
            continue;
        }
        let aborted = header.is_transactional() && aborting.contains(&header.producer_id);
        if aborted && isolation == Isolation::ReadCommitted {
            continue;
        }
        // A batch is given whole, also to who has read a part of it.
        let new = header.next_offset().saturating_sub(from.max(header.base_offset));
        let count = new.min(i64::from(header.count));
        read.shown = read.shown.saturating_add(u64::try_from(count).unwrap_or(0));
        let values = records::values(&header, &batch)?;
        read.values.extend(values.into_iter().filter(|(offset, _)| *offset >= from));
    }
    Ok(())
}

#[cfg(test)]
mod tests;

//! A log on a simulated disk, beside a plain list of what was appended.

mod again;
mod append;
mod counting;
mod crash;
mod damage;
mod dump;
mod indexes;
mod lifecycle;
mod read;
mod recovery;
mod retain;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::engine::batch::samples::{Entry, encode, header, seal};
use crate::engine::batch::{Header, marker};
use crate::engine::partition::Partition;
use crate::engine::{Now, Outcome, Producer, TopicId};
use crate::store::StoreError;
use crate::store::mem_disk::MemDisk;

const DIR: &str = "t-0";
const TOPIC: TopicId = TopicId([7; 16]);

/// Small enough that every test rolls and every read meets index entries.
const SETTINGS: LogSettings = LogSettings { segment_bytes: 4000, index_interval_bytes: 200, segment_ms: i64::MAX };

/// A partition's state as it is rebuilt, wrapped so that it is a [`Replay`].
struct State(Partition);

impl State {
    fn new() -> Self {
        Self(Partition::new(0, 0))
    }
}

impl Replay for State {
    fn snapshot(&mut self, bytes: &[u8]) -> bool {
        self.0.restore(bytes, Now::default()).is_ok()
    }

    fn batch(&mut self, header: &Header, control: Option<&[u8]>) -> Option<Aborted> {
        self.0.replay(header, control, Now::default())
    }
}

struct Rig {
    disk: MemDisk,
    log: Log,
    state: State,
    /// Everything appended.
    batches: Vec<Vec<u8>>,
    aborted: Vec<Aborted>,
    point: Option<RecoveryPoint>,
    /// Leader epoch of what is appended.
    epoch: i32,
    sequences: BTreeMap<i64, i32>,
}

impl Rig {
    fn new() -> Self {
        let disk = MemDisk::default();
        let log = Log::create(Arc::new(disk.clone()), Path::new(DIR), TOPIC, 1, SETTINGS).unwrap();
        Self {
            disk,
            log,
            state: State::new(),
            batches: Vec::new(),
            aborted: Vec::new(),
            point: None,
            epoch: 1,
            sequences: BTreeMap::new(),
        }
    }

    /// A batch for the log's end: `records` records of `value_bytes` each, the timestamps rising by one from `at_ms`.
    fn data(&mut self, records: i32, value_bytes: usize, at_ms: i64, producer: Option<i64>) -> Vec<u8> {
        let entry = |at| Entry { delta_ms: at, value: Some(vec![b'v'; value_bytes]), ..Entry::default() };
        let payload = encode(&(0..i64::from(records)).map(entry).collect::<Vec<_>>());
        let mut front = header(records);
        front.base_offset = self.log.next_offset();
        front.leader_epoch = self.epoch;
        front.base_timestamp = at_ms;
        front.max_timestamp = at_ms + i64::from(records) - 1;
        if let Some(id) = producer {
            let sequence = self.sequences.entry(id).or_default();
            front.producer_id = id;
            front.producer_epoch = 0;
            front.base_sequence = *sequence;
            front.attributes = 1 << 4;
            *sequence += records;
        }
        seal(&front, &payload)
    }

    fn end(&self, producer: i64, outcome: Outcome) -> Vec<u8> {
        let producer = Producer { id: producer, epoch: 0 };
        let marker = marker::Marker { producer, outcome, coordinator_epoch: 1 };
        marker::write(&marker, self.log.next_offset(), self.epoch, 1000, false).to_vec()
    }

    fn append(&mut self, bytes: Vec<u8>) -> Appended {
        let appended = self.log.append(std::slice::from_ref(&bytes), 0).unwrap();
        self.took(bytes);
        appended
    }

    fn took(&mut self, bytes: Vec<u8>) {
        if let Some(aborted) = self.state.batch(&Header::read(&bytes).unwrap(), Some(&bytes)) {
            self.log.note_aborted(aborted);
            self.aborted.push(aborted);
        }
        self.batches.push(bytes);
    }

    fn append_data(&mut self, records: i32, value_bytes: usize, producer: Option<i64>) {
        let bytes = self.data(records, value_bytes, 1000 + self.log.next_offset(), producer);
        self.append(bytes);
    }

    fn sync(&mut self) {
        if let Some(job) = self.log.take_unsynced() {
            job.run().unwrap();
            self.log.note_synced(job.end());
        }
    }

    fn checkpoint(&mut self) {
        self.sync();
        let snapshot = self.state.0.snapshot();
        self.point = self.log.checkpoint(&snapshot, self.log.next_offset()).unwrap();
        assert!(self.point.is_some());
    }

    /// What is there after the process is gone, opened as after a crash; the disk is as it is now.
    fn reopened(&self, disk: &MemDisk, witness: Offset) -> Result<(Log, Opened, State), StoreError> {
        open(disk, OpenHow { point: self.point, log_start: 0, clean: false, witness, incarnation: i32::MAX })
    }

    fn close(self) -> (MemDisk, Vec<Vec<u8>>, Vec<Aborted>, RecoveryPoint) {
        let snapshot = self.state.0.snapshot();
        let point = self.log.close(&snapshot).unwrap();
        (self.disk, self.batches, self.aborted, point)
    }
}

fn open(disk: &MemDisk, how: OpenHow) -> Result<(Log, Opened, State), StoreError> {
    let mut state = State::new();
    let (log, opened) = Log::open(Arc::new(disk.clone()), Path::new(DIR), SETTINGS, how, &mut state)?;
    Ok((log, opened, state))
}

fn wish(from: Offset, limit: Offset) -> ReadWish {
    ReadWish { from, limit, max_bytes: usize::MAX, at_least_one: true, how: ReadHow::Block }
}

/// All bytes of the log, read from the front.
fn read_all(reader: &LogReader, end: Offset) -> Vec<u8> {
    let (mut all, mut from) = (Vec::new(), reader.first_base());
    while from < end {
        let ReadOutcome::Bytes { bytes, next_offset } = reader.read(&wish(from, end)).unwrap() else {
            panic!("cannot read at {from}")
        };
        assert!(next_offset > from, "stuck at {from}");
        all.extend(bytes);
        from = next_offset;
    }
    all
}

/// The aborted list by looking at all of them.
fn aborted_oracle(aborted: &[Aborted], from: Offset, upper: Offset) -> Vec<(i64, Offset)> {
    let mut list: Vec<_> = aborted
        .iter()
        .filter(|entry| entry.last_offset >= from && entry.first_offset < upper)
        .map(|entry| (entry.first_offset, entry.producer_id))
        .collect();
    list.sort_unstable();
    list.into_iter().map(|(first, id)| (id, first)).collect()
}

/// Splits bytes into whole batches.
fn split(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut batches = Vec::new();
    while let Some(header) = Header::read(bytes) {
        let (batch, rest) = bytes.split_at(header.size().unwrap());
        batches.push(batch.to_vec());
        bytes = rest;
    }
    assert!(bytes.is_empty());
    batches
}

/// Transactions of three producers, interleaved, some aborted, over several segments.
fn busy(rig: &mut Rig, rounds: usize, mut seed: u64) {
    let mut begun = [false; 4];
    for _ in 0..rounds {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let draw = usize::try_from(seed >> 33).unwrap();
        let producer = draw % 4;
        let id = i64::try_from(producer).unwrap();
        match draw / 4 % 3 {
            0 if begun[producer] => {
                let outcome = if draw / 12 % 2 == 0 { Outcome::Abort } else { Outcome::Commit };
                let bytes = rig.end(id, outcome);
                rig.append(bytes);
                begun[producer] = false;
            }
            1 => rig.append_data(1 + i32::try_from(draw / 12 % 5).unwrap(), draw / 60 % 90, None),
            _ => {
                rig.append_data(1 + i32::try_from(draw / 12 % 3).unwrap(), draw / 60 % 90, Some(id));
                begun[producer] = true;
            }
        }
    }
}

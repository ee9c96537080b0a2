//! A broker that is killed under load with much in its logs, and started again.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use kafka_protocol::messages::{EndTxnRequest, ProduceRequest};

use crate::child::now;
use crate::figures::{figure, heading, mib, ms};
use crate::raw::batch::{Batch, Pid};
use crate::raw::data::{Appended, produce_request};
use crate::raw::txn::{add_partitions_request, end_txn_request};
use crate::raw::{Client, Sent};
use crate::restart::{Broker, TOPIC};

/// How much, into how many partitions, how many of which in a hundred are written in transactions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fill {
    pub(crate) gigabytes: u64,
    pub(crate) partitions: i32,
    pub(crate) transactional_percent: i32,
}

/// Longer it is not filled.
const LIMIT: Duration = Duration::from_secs(420);
const WRITERS: i32 = 16;
/// Requests of one connection that are under way.
const AHEAD: usize = 5;
/// Records of a batch, and bytes of each.
const RECORDS: usize = 250;
const RECORD_BYTES: usize = 1_000;
/// Batches of each partition in a transaction; every fifth transaction is aborted.
const ROUNDS: usize = 4;
const CONCURRENT_TRANSACTIONS: i16 = 51;

/// Measures it.
pub(crate) fn run(program: &Path, fill: Fill) {
    let Fill { gigabytes, partitions, transactional_percent } = fill;
    heading(&format!("{gigabytes} GB in {partitions} partitions, {transactional_percent} % written in transactions"));
    let mut broker = Broker::of(program);
    assert_eq!(broker.server.connect().create_topic(TOPIC, partitions), 0, "CreateTopics");
    let acknowledged = fill_and_kill(&mut broker, fill);
    broker.start("start after SIGKILL", partitions);
    let ends = broker.ends(partitions);
    let lost = acknowledged.iter().zip(&ends).filter(|(acknowledged, end)| acknowledged > end).count();
    figure("partitions that end before what was acknowledged", &lost.to_string());
    assert_eq!(lost, 0, "acknowledged {acknowledged:?}, there {ends:?}");
    broker.read_everything(partitions);
    broker.stop();
    broker.start("start after SIGTERM", partitions);
}

/// What the writers share.
struct Load {
    bytes: AtomicU64,
    /// The end of what was acknowledged, for each partition.
    ends: Vec<AtomicI64>,
    over: AtomicBool,
}

/// Gives the offset behind the last acknowledged record of each partition.
fn fill_and_kill(broker: &mut Broker, fill: Fill) -> Vec<i64> {
    let load = Load {
        bytes: AtomicU64::new(0),
        ends: (0..fill.partitions).map(|_| AtomicI64::new(0)).collect(),
        over: AtomicBool::new(false),
    };
    let began = now();
    let address = broker.server.address();
    std::thread::scope(|scope| {
        for number in 0..WRITERS {
            let load = &load;
            scope.spawn(move || {
                let mut parts: Vec<i32> = (0..fill.partitions).filter(|part| part % WRITERS == number).collect();
                if parts.is_empty() {
                    parts.push(number % fill.partitions);
                }
                let few = fill.partitions * fill.transactional_percent / 100;
                let (inside, outside): (Vec<i32>, Vec<i32>) = parts.into_iter().partition(|part| *part < few);
                let mut writer = Writer::new(Client::connect(address), number, load);
                let ended = writer.write(&inside, &outside);
                // That the broker goes away is what is wanted.
                assert!(load.over.load(Ordering::Relaxed) || ended.is_ok(), "{ended:?}");
            });
        }
        while load.bytes.load(Ordering::Relaxed) < fill.gigabytes * 1_000_000_000 && began.elapsed() < LIMIT {
            std::thread::sleep(Duration::from_millis(5));
        }
        load.over.store(true, Ordering::Relaxed);
        broker.server.kill();
    });
    let bytes = load.bytes.load(Ordering::Relaxed);
    let rate = u64::try_from(u128::from(bytes) * 1000 / began.elapsed().as_millis().max(1)).unwrap();
    figure("acknowledged", &format!("{} in {}, {}/s, then SIGKILL", mib(bytes), ms(began.elapsed()), mib(rate)));
    load.ends.into_iter().map(AtomicI64::into_inner).collect()
}

/// One connection, with a plain idempotent producer and a transactional one.
struct Writer<'a> {
    client: Client,
    id: String,
    load: &'a Load,
    sent: VecDeque<(Sent, i32)>,
    /// Templates: outside and inside of transactions.
    batches: [Vec<u8>; 2],
}

impl<'a> Writer<'a> {
    fn new(mut client: Client, number: i32, load: &'a Load) -> Self {
        let id = format!("writer-{number}");
        let (code, plain) = client.init_producer(None, 60_000);
        assert_eq!(code, 0, "InitProducerId");
        let owner = client.owner(&id);
        let (mut outside, mut inside) = (Batch::idempotent(plain, 0, 0), Batch::transactional(owner, 0, 0));
        let mut draw = 0x9E37_79B9_7F4A_7C15_u64 + u64::try_from(number).unwrap();
        let records: Vec<_> = (0..RECORDS).map(|_| (None, Some(noise(&mut draw)))).collect();
        outside.records.clone_from(&records);
        inside.records = records;
        Self { client, id, load, sent: VecDeque::new(), batches: [outside.bytes(), inside.bytes()] }
    }

    /// Goes on until the broker does not.
    fn write(&mut self, inside: &[i32], outside: &[i32]) -> io::Result<()> {
        let (mut sequence, step) = (0, i32::try_from(RECORDS).unwrap());
        for transaction in 0.. {
            if !inside.is_empty() {
                self.open(inside)?;
            }
            for _ in 0..ROUNDS {
                for part in outside {
                    self.send(*part, sequence, Kind::Plain)?;
                }
                for part in inside {
                    self.send(*part, sequence, Kind::Transactional)?;
                }
                sequence += step;
            }
            self.receive_until(0)?;
            if !inside.is_empty() {
                self.end(transaction % 5 != 4)?;
            }
        }
        Ok(())
    }

    fn owner(&self) -> Pid {
        let field = |from: usize| i64::from_be_bytes(self.batches[1][from..from + 8].try_into().unwrap());
        Pid { id: field(43), epoch: i16::try_from(field(51) >> 48).unwrap() }
    }

    fn open(&mut self, parts: &[i32]) -> io::Result<()> {
        let parts: Vec<_> = parts.iter().map(|part| (TOPIC, *part)).collect();
        loop {
            let request = add_partitions_request(&self.id, self.owner(), &parts);
            let answer = self.client.try_call(3, &request)?;
            let results = answer.results_by_topic_v3_and_below;
            let codes: Vec<i16> = results
                .iter()
                .flat_map(|topic| topic.results_by_partition.iter().map(|part| part.partition_error_code))
                .collect();
            match codes.iter().find(|code| **code != 0) {
                None => return Ok(()),
                Some(&CONCURRENT_TRANSACTIONS) => {}
                Some(code) => panic!("AddPartitionsToTxn: error {code}"),
            }
        }
    }

    fn end(&mut self, commit: bool) -> io::Result<()> {
        let request = end_txn_request(&self.id, self.owner(), commit);
        loop {
            match self.client.try_call::<EndTxnRequest>(3, &request)?.error_code {
                0 => return Ok(()),
                CONCURRENT_TRANSACTIONS => {}
                code => panic!("EndTxn: error {code}"),
            }
        }
    }

    fn send(&mut self, part: i32, sequence: i32, kind: Kind) -> io::Result<()> {
        let (template, id) = match kind {
            Kind::Plain => (&mut self.batches[0], None),
            Kind::Transactional => (&mut self.batches[1], Some(self.id.as_str())),
        };
        template[53..57].copy_from_slice(&sequence.to_be_bytes());
        let sum = crc32c::crc32c(&template[21..]);
        template[17..21].copy_from_slice(&sum.to_be_bytes());
        let request = produce_request(TOPIC, part, id, template.clone());
        self.sent.push_back((self.client.try_send(9, &request)?, part));
        self.receive_until(AHEAD - 1)
    }

    fn receive_until(&mut self, left: usize) -> io::Result<()> {
        while self.sent.len() > left {
            let Some((sent, part)) = self.sent.pop_front() else { break };
            let answer = Appended::of(&self.client.try_receive::<ProduceRequest>(sent)?);
            assert_eq!(answer.code, 0, "Produce to partition {part}");
            let end = answer.base_offset + i64::try_from(RECORDS).unwrap();
            self.load.ends[usize::try_from(part).unwrap()].fetch_max(end, Ordering::Relaxed);
            self.load.bytes.fetch_add(u64::try_from(self.batches[0].len()).unwrap(), Ordering::Relaxed);
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Plain,
    Transactional,
}

/// What no compression makes smaller.
fn noise(draw: &mut u64) -> Vec<u8> {
    let word = |_| {
        *draw ^= *draw << 13;
        *draw ^= *draw >> 7;
        *draw ^= *draw << 17;
        draw.to_ne_bytes()
    };
    (0..RECORD_BYTES / 8).flat_map(word).collect()
}

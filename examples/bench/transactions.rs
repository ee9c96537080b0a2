//! How long after a commit its records are seen, and how many transactions end in a second.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::child::{Server, now};
use crate::figures::{figure, heading, ms, spread};
use crate::raw::Client;
use crate::raw::batch::{Batch, Pid};
use crate::raw::data::{Isolation, fetch_request};

/// Transactions whose visibility is measured.
const SEEN: usize = 200;
/// How long transactions are counted.
const COUNTED: Duration = Duration::from_secs(5);

/// Who sends them, and where.
struct Producer {
    client: Client,
    id: String,
    owner: Pid,
    part: i32,
    sequence: i32,
}

impl Producer {
    fn new(server: &Server, part: i32) -> Self {
        let (mut client, id) = (server.connect(), format!("id-{part}"));
        let owner = client.owner(&id);
        Self { client, id, owner, part, sequence: 0 }
    }

    /// A transaction of one record, up to its end.
    fn open(&mut self) {
        let codes = self.client.add_partitions(&self.id, self.owner, &[("topic", self.part)]);
        assert_eq!(codes, [0], "AddPartitionsToTxn");
        let batch = Batch::transactional(self.owner, self.sequence, 1);
        let answer = self.client.produce("topic", self.part, Some(&self.id), &batch);
        assert_eq!(answer.code, 0, "Produce");
        self.sequence += 1;
    }

    fn commit(&mut self) {
        self.client.end_txn_surely(&self.id, self.owner, true);
    }
}

/// A reader of committed records waits while transactions commit: the time from sending EndTxn to its record.
pub(crate) fn visibility(program: &Path) {
    heading("visibility of a commit to a waiting reader");
    let server = Server::of(program, &[]);
    server.connect().create_topic("topic", 1);
    let mut producer = Producer::new(&server, 0);
    let mut reader = server.connect();
    let (mut seen, mut answered) = (Vec::new(), Vec::new());
    for n in 0..SEEN {
        producer.open();
        let next = i64::try_from(2 * n).unwrap();
        let wait = fetch_request("topic", 0, next, Isolation::ReadCommitted).with_max_wait_ms(10_000).with_min_bytes(1);
        let waiting = reader.send(12, &wait);
        let began = now();
        std::thread::scope(|scope| {
            let read = scope.spawn(|| {
                let answer = reader.receive::<kafka_protocol::messages::FetchRequest>(waiting);
                assert!(answer.responses[0].partitions[0].records.is_some(), "a record");
                began.elapsed()
            });
            producer.commit();
            answered.push(began.elapsed());
            seen.push(read.join().unwrap());
        });
    }
    spread("EndTxn sent to answer", answered);
    spread("EndTxn sent to record read", seen);
}

/// Transactions of one record each.
pub(crate) fn rate(program: &Path, producers: i32) {
    heading(&format!("{producers} producers, one record and one partition a transaction"));
    let server = Server::of(program, &[]);
    server.connect().create_topic("topic", producers);
    let stop = AtomicBool::new(false);
    let (count, times) = std::thread::scope(|scope| {
        let (server, stop) = (&server, &stop);
        let one = |part| {
            scope.spawn(move || {
                let mut producer = Producer::new(server, part);
                let mut times = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let began = now();
                    producer.open();
                    producer.commit();
                    times.push(began.elapsed());
                }
                times
            })
        };
        let threads: Vec<_> = (0..producers).map(one).collect();
        std::thread::sleep(COUNTED);
        stop.store(true, Ordering::Relaxed);
        let times: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        (times.len(), times)
    });
    let rate = f64::from(u32::try_from(count).unwrap()) / COUNTED.as_secs_f64();
    figure("transactions a second", &format!("{rate:.0}"));
    figure("mean", &ms(times.iter().sum::<Duration>() / u32::try_from(count).unwrap()));
    spread("AddPartitions, Produce, EndTxn", times);
}

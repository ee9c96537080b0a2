//! Writes a data directory that holds batches of every kind, for others to read.

use std::path::Path;

use crate::child::Server;
use crate::figures::figure;
use crate::raw::Client;
use crate::raw::batch::{Batch, Codec};
use crate::raw::txn::Member;

/// Segments are closed at so many bytes, so that there are many of them.
const SEGMENT_BYTES: &str = "16384";
const PARTITIONS: i32 = 3;
/// Batches of each kind to each partition.
const BATCHES: i32 = 60;

/// Writes through this program into `data`, and ends it in order.
pub(crate) fn fill(program: &Path, data: &Path) {
    let mut server = Server::of(program, &[&format!("data_dir={}", data.display())]);
    let mut client = server.connect();
    let configs = [("internal.segment.bytes", SEGMENT_BYTES), ("index.interval.bytes", "512")];
    for topic in ["plain", "idempotent", "transactional", "mixed"] {
        assert_eq!(client.create_topic_with(topic, PARTITIONS, &configs), 0, "CreateTopics");
    }
    for part in 0..PARTITIONS {
        plain(&mut client, "plain", part);
        idempotent(&mut client, "idempotent", part);
    }
    transactions(&mut client, "transactional");
    for part in 0..PARTITIONS {
        plain(&mut client, "mixed", part);
        idempotent(&mut client, "mixed", part);
    }
    transactions(&mut client, "mixed");
    drop(client);
    let status = server.terminate();
    assert!(status.success(), "{status}");
    figure("written to", &data.display().to_string());
}

fn plain(client: &mut Client, topic: &str, part: i32) {
    let codecs = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];
    for (n, codec) in (0..BATCHES).zip(codecs.into_iter().cycle()) {
        let mut batch = Batch::plain(10).values(&format!("plain-value-{n}"), 10).compressed(codec);
        batch.timestamp += i64::from(n) * 1_000;
        assert_eq!(client.produce(topic, part, None, &batch).code, 0, "Produce");
    }
}

fn idempotent(client: &mut Client, topic: &str, part: i32) {
    let (code, producer) = client.init_producer(None, 60_000);
    assert_eq!(code, 0, "InitProducerId");
    for n in 0..BATCHES {
        let batch = Batch::idempotent(producer, n * 10, 10).values(&format!("idempotent-value-{n}"), 10);
        assert_eq!(client.produce(topic, part, None, &batch).code, 0, "Produce");
    }
}

/// Two owners take turns; every third transaction is aborted, and one is open at the end.
fn transactions(client: &mut Client, topic: &str) {
    let parts: Vec<_> = (0..PARTITIONS).map(|part| (topic, part)).collect();
    let ids = [format!("{topic}-a"), format!("{topic}-b")];
    for (id, part_of) in ids.iter().zip(0..) {
        let mut owner = client.owner(id);
        let mut sequence = 0;
        for n in 0..BATCHES {
            assert!(client.add_partitions(id, owner, &parts).iter().all(|code| *code == 0), "AddPartitionsToTxn");
            for part in 0..PARTITIONS {
                let batch = Batch::transactional(owner, sequence, 5).values(&format!("{id}-value-{n}"), 5);
                assert_eq!(client.produce(topic, part, Some(id), &batch).code, 0, "Produce");
            }
            sequence += 5;
            let (group, member) = (format!("group-{part_of}"), Member::default());
            assert_eq!(client.add_offsets(id, owner, &group), 0, "AddOffsetsToTxn");
            let offset = ("plain", 0, i64::from(n));
            assert_eq!(client.txn_offset_commit((id, owner), (&group, &member), offset), 0, "TxnOffsetCommit");
            match n {
                _ if n % 20 == 10 => (owner, sequence) = (client.owner(id), 0),
                _ if n == BATCHES - 1 && part_of == 1 => {}
                _ => client.end_txn_surely(id, owner, n % 3 != 1),
            }
        }
    }
}

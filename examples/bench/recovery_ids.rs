//! A broker that is killed with many transactional ids in its ledger, and started again.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use kafka_protocol::messages::InitProducerIdRequest;

use crate::child::now;
use crate::figures::{figure, heading, ms};
use crate::raw::Client;
use crate::raw::batch::{Batch, NOBODY, Pid};
use crate::raw::txn::init_producer_request;
use crate::restart::{Broker, TOPIC};

const PARTITIONS: i32 = 100;
const CONNECTIONS: usize = 32;
/// Requests of one connection that are under way.
const AHEAD: usize = 16;
/// Of so many ids one has a transaction that was committed, and another one that is open.
const ONE_IN: usize = 10;
/// A transaction that is open must be so at the end of the measurement.
const TIMEOUT_MS: i32 = 900_000;
/// Longer no ids are made.
const LIMIT: Duration = Duration::from_secs(420);
const CONCURRENT_TRANSACTIONS: i16 = 51;

/// Measures it.
pub(crate) fn run(program: &Path, ids: usize) {
    heading(&format!("{ids} transactional ids, {} % committed once, {} % open", 100 / ONE_IN, 100 / ONE_IN));
    let mut broker = Broker::of(program);
    assert_eq!(broker.server.connect().create_topic(TOPIC, PARTITIONS), 0, "CreateTopics");
    let began = now();
    let address = broker.server.address();
    std::thread::scope(|scope| {
        for number in 0..CONNECTIONS {
            let own: Vec<usize> = (0..ids).filter(|n| n % CONNECTIONS == number).collect();
            scope.spawn(move || make(&mut Client::connect(address), &own));
        }
    });
    figure("made", &ms(began.elapsed()));
    let last = format!("id-{}", ids - 1);
    broker.server.kill();
    figure("meta.db", &size(&broker, "meta.db"));
    figure("meta.db-wal", &size(&broker, "meta.db-wal"));
    for what in ["start after SIGKILL", "start after SIGTERM"] {
        broker.start(what, PARTITIONS);
        let began = now();
        broker.server.connect().owner(&last);
        figure("InitProducerId of one of them", &ms(began.elapsed()));
        broker.stop();
    }
}

fn size(broker: &Broker, name: &str) -> String {
    let size = std::fs::metadata(broker.server.dir().join("data").join(name)).map_or(0, |file| file.len());
    crate::figures::mib(size)
}

fn make(client: &mut Client, own: &[usize]) {
    let (began, mut sent, mut owners) = (now(), VecDeque::new(), Vec::with_capacity(own.len()));
    let mut take = |client: &mut Client, sent: &mut VecDeque<_>, left: usize| {
        while sent.len() > left {
            let Some(first) = sent.pop_front() else { break };
            let answer = client.receive::<InitProducerIdRequest>(first);
            assert_eq!(answer.error_code, 0, "InitProducerId");
            owners.push(Pid { id: answer.producer_id.0, epoch: answer.producer_epoch });
        }
    };
    for n in own {
        assert!(began.elapsed() < LIMIT, "ids take too long");
        let id = format!("id-{n}");
        sent.push_back(client.send(4, &init_producer_request(Some(&id), TIMEOUT_MS, NOBODY)));
        take(client, &mut sent, AHEAD - 1);
    }
    take(client, &mut sent, 0);
    for (n, owner) in own.iter().zip(owners) {
        assert!(began.elapsed() < LIMIT, "transactions take too long");
        // The connection's number is the id's by its remainder, so the share is taken of what is left of it.
        match (n / CONNECTIONS) % ONE_IN {
            0 => write(client, (*n, owner), true),
            1 => write(client, (*n, owner), false),
            _ => {}
        }
    }
}

/// A transaction of one record.
fn write(client: &mut Client, (n, owner): (usize, Pid), commit: bool) {
    let (id, part) = (format!("id-{n}"), i32::try_from(n).unwrap() % PARTITIONS);
    loop {
        match client.add_partitions(&id, owner, &[(TOPIC, part)])[0] {
            0 => break,
            CONCURRENT_TRANSACTIONS => {}
            code => panic!("AddPartitionsToTxn: error {code}"),
        }
    }
    let answer = client.produce(TOPIC, part, Some(&id), &Batch::transactional(owner, 0, 1));
    assert_eq!(answer.code, 0, "Produce");
    if commit {
        client.end_txn_surely(&id, owner, true);
    }
}

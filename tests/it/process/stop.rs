//! SIGTERM: what is under way is finished, what waits is let go, and the next start has nothing to recover.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use kafka_protocol::messages::JoinGroupRequest;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;

use super::child::{Server, now};
use super::serve;
use crate::raw::batch::Batch;
use crate::raw::data::{Isolation, fetch_request};
use crate::raw::{Client, Sent, text};

/// The order's own figure.
const SOON: Duration = Duration::from_secs(5);

fn join(client: &mut Client) -> Sent {
    let protocol = JoinGroupRequestProtocol::default().with_name(text("range"));
    let request = JoinGroupRequest::default()
        .with_group_id(text("group").into())
        .with_session_timeout_ms(60_000)
        .with_rebalance_timeout_ms(60_000)
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![protocol]);
    client.send(3, &request)
}

fn ends_soon(server: &mut Server, what: &str) {
    let told = now();
    let status = server.terminate();
    let took = told.elapsed();
    assert_eq!(status.code(), Some(0), "{what}: {}", server.log());
    assert!(took < SOON, "{what}: {took:?}");
    server.start_again();
    assert!(server.started_clean(), "{what}: {}", server.log());
}

#[test]
fn a_stop_is_clean_whoever_is_connected() {
    let mut server = serve(&[]);
    assert!(server.connect().create_topic("topic", 2) == 0);
    ends_soon(&mut server, "nobody is there");

    let mut producer = server.connect();
    assert_eq!(producer.produce("topic", 0, None, &Batch::plain(3)).code, 0);
    let mut idle = server.connect();
    assert_eq!(idle.api_versions().error_code, 0);
    let silent = server.connect();
    let mut halfway = server.connect();
    halfway.send_bytes(&[0, 0, 1, 0, 0, 3]);
    let mut admin = TcpStream::connect(server.admin()).unwrap();
    admin.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n").unwrap();
    let mut reader = server.connect();
    let parked = fetch_request("topic", 1, 0, Isolation::ReadCommitted).with_max_wait_ms(120_000).with_min_bytes(1);
    reader.send(12, &parked);
    let mut first = server.connect();
    let joined = join(&mut first);
    assert_eq!(first.receive::<JoinGroupRequest>(joined).error_code, 0);
    let mut second = server.connect();
    join(&mut second);
    let owner = producer.owner("open");
    assert_eq!(producer.add_partitions("open", owner, &[("topic", 1)]), [0]);
    let batch = Batch::transactional(owner, 0, 1);
    assert_eq!(producer.produce("topic", 1, Some("open"), &batch).code, 0);
    ends_soon(&mut server, "all kinds of connections");
    for client in [producer, idle, silent, halfway, reader, first, second] {
        client.ended();
    }
    let mut client = server.connect();
    assert_eq!(client.read_all("topic", 0, Isolation::ReadCommitted).len(), 3, "P1");
    client.end_txn_surely("open", owner, true);
    assert_eq!(client.read_all("topic", 1, Isolation::ReadCommitted).len(), 1, "a stop ends no transaction");

    server.kill();
    server.start_again();
    assert!(!server.started_clean(), "the check would see it");
    let mut client = server.connect();
    assert_eq!(client.read_all("topic", 1, Isolation::ReadCommitted).len(), 1, "P1");
}

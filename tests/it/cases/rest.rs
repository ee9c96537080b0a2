//! What holds once nothing is open any more, asked after each case.

use std::collections::BTreeMap;

use kafka_protocol::messages::describe_producers_request::TopicRequest;
use kafka_protocol::messages::describe_producers_response::ProducerState;
use kafka_protocol::messages::{DescribeProducersRequest, ListTransactionsRequest};
use oncelog::clock::Clock;

use crate::oracle::{FREE, HELD, PARTS, Scene};
use crate::raw::data::{Isolation, LATEST};
use crate::raw::{Client, text};

/// Every partition of the scene.
fn partitions() -> impl Iterator<Item = (&'static str, i32)> {
    [HELD, FREE].into_iter().flat_map(|topic| (0..PARTS).map(move |part| (topic, part)))
}

/// The producers that a partition knows.
pub(super) fn producers(client: &mut Client, (topic, part): (&str, i32)) -> Vec<ProducerState> {
    let asked = TopicRequest::default().with_name(text(topic).into()).with_partition_indexes(vec![part]);
    let answer = client.call(0, &DescribeProducersRequest::default().with_topics(vec![asked]));
    let described = &answer.topics[0].partitions[0];
    assert_eq!(described.error_code, 0, "DescribeProducers of {topic}-{part}");
    described.active_producers.clone()
}

/// Nothing holds readers back anywhere, and no transaction is open or on its way.
pub(super) fn nothing_is_open(client: &mut Client) {
    for (topic, part) in partitions() {
        let mut end = |isolation| client.list_offsets(topic, part, LATEST, isolation).1;
        let (stable, end) = (end(Isolation::ReadCommitted), end(Isolation::ReadUncommitted));
        assert_eq!(stable, end, "the last stable offset of {topic}-{part}");
        let known = producers(client, (topic, part));
        assert!(known.iter().all(|known| known.current_txn_start_offset == -1), "{topic}-{part}: {known:?}");
    }
    for state in client.call(0, &ListTransactionsRequest::default()).transaction_states {
        let (id, state) = (state.transactional_id.as_str(), state.transaction_state.as_str());
        assert!(matches!(state, "Empty" | "CompleteCommit" | "CompleteAbort"), "{id} is {state}");
    }
}

fn committed(client: &mut Client) -> BTreeMap<(&'static str, i32), Vec<String>> {
    partitions().map(|at| (at, client.read_all(at.0, at.1, Isolation::ReadCommitted))).collect()
}

/// The same, and it is all there after a kill. A scene on a clock moved by hand stays on it.
pub(super) fn at_rest(scene: &mut Scene, clock: Option<&Clock>) {
    let mut client = scene.connect();
    nothing_is_open(&mut client);
    let before = committed(&mut client);
    scene.crash_and_start(|parts| {
        if let Some(clock) = clock {
            parts.clock = clock.clone();
        }
    });
    client = scene.connect();
    nothing_is_open(&mut client);
    assert_eq!(committed(&mut client), before, "what read_committed shows after a kill");
}

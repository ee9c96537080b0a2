//! Producers that a partition has forgotten, and records it will not take.

use oncelog::clock::Clock;

use crate::broker::TestBroker;
use crate::raw::batch::Batch;
use crate::raw::data::Isolation;

const START_MS: i64 = 1_700_000_000_000;

fn by_hand() -> (TestBroker, Clock) {
    let clock = Clock::manual(START_MS);
    let own = clock.clone();
    let broker = TestBroker::on(|config| config.producers.id_expiration_ms = 5_000, |parts| parts.clock = own);
    (broker, clock)
}

/// A producer that nobody remembers may go on where it thinks it is; UNKNOWN_PRODUCER_ID is never said.
#[test]
fn c_63_a_producer_that_is_not_known_any_more() {
    let (broker, clock) = by_hand();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 1), 0);
    let (code, producer) = client.init_producer(None, 60_000);
    assert_eq!(code, 0);
    let mut send = |sequence: i32| {
        let said = client.produce("t", 0, None, &Batch::idempotent(producer, sequence, 1));
        (said.code, said.base_offset)
    };
    for n in 0..7 {
        assert_eq!(send(n), (0, i64::from(n)));
    }
    assert_eq!(send(8), (45, -1), "a gap, while it is known");
    clock.advance(600_001);
    assert_eq!(send(8), (0, 7), "idle too long: any sequence");
    for first in [7, 0] {
        let mut other = broker.connect();
        assert_eq!((other.delete_topic("t"), other.create_topic("t", 1)), (0, 0));
        assert_eq!(send(first), (0, 0), "the topic was made again: from {first}");
        assert_eq!(send(first + 1), (0, 1));
        assert_eq!(send(first + 3), (45, -1));
    }
}

#[test]
fn c_79_records_from_the_future() {
    const YEAR_MS: i64 = 365 * 24 * 3_600_000;
    let (broker, _clock) = by_hand();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 1), 0);
    let dated = |timestamp| Batch { timestamp, ..Batch::plain(1) };
    for (timestamp, code) in [(START_MS + 10 * YEAR_MS, 32), (START_MS + 3_600_001, 32), (START_MS + 3_600_000, 0)] {
        assert_eq!(client.produce("t", 0, None, &dated(timestamp)).code, code, "{}", timestamp - START_MS);
    }
    let any = [("message.timestamp.after.max.ms", "9223372036854775807")];
    assert_eq!(client.create_topic_with("any", 1, &any), 0);
    assert_eq!(client.produce("any", 0, None, &dated(START_MS + 10 * YEAR_MS)).code, 0);
    let counts = ["t", "any"].map(|topic| client.read_all(topic, 0, Isolation::ReadCommitted).len());
    assert_eq!(counts, [1, 1]);
}

use std::time::Duration;

use kafka_protocol::messages::{BrokerId, FetchRequest};

use super::{Wishes, isolation};
use crate::engine::Refusal;
use crate::engine::fetch::{FETCH_MOST_BYTES, Isolation};

#[test]
fn wishes_are_held_to_what_may_be_wished() {
    for (rule, asked, expected) in [
        ("as asked", (1 << 20, 1000, 500), (1 << 20, 1000, 500)),
        ("F-721", (i32::MAX, 1, 500), (FETCH_MOST_BYTES, 1, 500)),
        ("F-722", (100, 1000, 500), (100, 100, 500)),
        ("F-722 at once", (100, 1, -1), (100, 1, 0)),
        ("F-725", (0, 1, 10), (0, 0, 10)),
        ("negative", (-1, -1, i32::MIN), (0, 0, 0)),
    ] {
        let (max_bytes, min_bytes, max_wait_ms) = asked;
        let request =
            FetchRequest::default().with_max_bytes(max_bytes).with_min_bytes(min_bytes).with_max_wait_ms(max_wait_ms);
        let (max_bytes, min_bytes, max_wait_ms) = expected;
        let max_wait = Duration::from_millis(max_wait_ms);
        assert_eq!(Wishes::of(&request), Wishes { max_bytes, min_bytes, max_wait }, "{rule}");
    }
}

#[test]
fn only_consumers_with_a_known_isolation_are_served() {
    for (rule, replica, level, expected) in [
        ("T-510", -1, 0, Ok(Isolation::ReadUncommitted)),
        ("T-510", -1, 1, Ok(Isolation::ReadCommitted)),
        ("R", -1, 2, Err(Refusal::InvalidRequest)),
        ("T-529 debug", -2, 1, Ok(Isolation::ReadCommitted)),
        ("F-736", 0, 0, Err(Refusal::InvalidRequest)),
    ] {
        let request = FetchRequest::default().with_replica_id(BrokerId(replica)).with_isolation_level(level);
        assert_eq!(isolation(&request), expected, "{rule}");
    }
}

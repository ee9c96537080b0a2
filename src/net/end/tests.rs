use super::{Complaints, End, SILENCE};
use crate::wire::frame::Foreign;
use std::time::Duration;
use tokio::time::Instant;

#[test]
fn of_one_cause_one_line_in_ten_seconds() {
    let complaints = Complaints::default();
    let start = Instant::now();
    let second = Duration::from_secs(1);
    let table = [
        ("http", start, Some(0)),
        ("http", start, None),
        ("http", start + 9 * second, None),
        ("tls", start + 9 * second, Some(0)),
        ("http", start + SILENCE, Some(2)),
        ("http", start + SILENCE + second, None),
        ("http", start + 3 * SILENCE, Some(1)),
    ];
    for (cause, now, expected) in table {
        assert_eq!(complaints.admits(cause, now), expected, "{cause} after {:?}", now.duration_since(start));
    }
}

#[test]
fn a_line_says_what_to_do_and_shows_no_control_characters() {
    let http = End::from(Foreign::Http).to_string();
    assert!(http.starts_with("an HTTP request on the Kafka port"), "{http}");
    let client = "x\n2026-01-01 INFO fake \u{1b}[2J".to_owned();
    let why = crate::wire::Malformed::Truncated;
    let line = End::Malformed { api: crate::wire::Api::Fetch, version: 4, client, why }.to_string();
    assert!(!line.contains(['\n', '\u{1b}']), "{line}: C-119");
}

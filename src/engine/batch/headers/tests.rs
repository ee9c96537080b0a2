use super::*;
use crate::engine::batch::samples::{self, Entry};

const KEY: &[u8] = b"trace";
const WIDE: Search = Search { plain_bytes: 1 << 20, unpacked_bytes: 1 << 20, values: 8, value_bytes: 8 };

fn entry(headers: &[(&'static str, Option<&'static str>)], value_bytes: usize) -> Entry {
    Entry { delta_ms: 0, key: Some(b"k".to_vec()), value: Some(vec![b'v'; value_bytes]), headers: headers.to_vec() }
}

fn batch(codec: i16, entries: &[Entry]) -> Vec<u8> {
    let header = samples::header(i32::try_from(entries.len()).unwrap());
    let attributes = if codec == 5 { 2 } else { codec };
    samples::seal(&Header { attributes, ..header }, &samples::pack(codec, &samples::encode(entries)))
}

fn found(batch: &[u8], search: Search) -> Vec<String> {
    header_values(batch, KEY, &search).into_iter().map(|value| String::from_utf8(value).unwrap()).collect()
}

#[test]
fn different_values_are_found_in_every_codec() {
    let entries = [
        entry(&[("other", Some("x")), ("trace", Some("one"))], 3),
        entry(&[], 100),
        entry(&[("trace", Some("one")), ("TRACE", Some("loud")), ("trac", Some("short"))], 0),
        entry(&[("trace", None), ("trace", Some("two")), ("trace", Some("much too long"))], 5),
    ];
    for codec in 0..=5 {
        assert_eq!(found(&batch(codec, &entries), WIDE), ["one", "", "two"], "codec {codec}");
    }
}

#[test]
fn a_search_stays_within_its_budget() {
    let near = entry(&[("trace", Some("near"))], 10);
    let far = entry(&[("trace", Some("far"))], 10_000);
    let narrow = Search { plain_bytes: 5_000, unpacked_bytes: 5_000, ..WIDE };
    for codec in 0..=5 {
        let both = batch(codec, &[near.clone(), far.clone()]);
        assert_eq!(found(&both, WIDE), ["near", "far"], "codec {codec}");
        let within = found(&both, narrow);
        // Snappy's block is unpacked as a whole or not at all; the other codecs by windows.
        let whole = codec == 2 || codec == 5;
        let wanted: &[&str] = if whole { &[] } else { &["near"] };
        assert_eq!(within, wanted, "codec {codec}");
    }
    let one = Search { values: 1, ..WIDE };
    assert_eq!(found(&batch(0, &[near, far]), one), ["near"]);
}

#[test]
fn broken_bytes_give_what_came_before() {
    let whole = batch(0, &[entry(&[("trace", Some("one"))], 3), entry(&[("trace", Some("two"))], 3)]);
    for end in 0..whole.len() {
        let values = found(&whole[..end], WIDE);
        assert!(values.is_empty() || values == ["one"] || values == ["one", "two"], "{end}: {values:?}");
    }
    for codec in [1, 2, 3, 4, 6, 7] {
        let mut lies = whole.clone();
        lies[22] = u8::try_from(codec).unwrap();
        assert_eq!(found(&lies, WIDE), Vec::<String>::new(), "codec {codec}");
    }
}

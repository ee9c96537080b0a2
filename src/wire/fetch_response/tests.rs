use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::FetchResponse;
use kafka_protocol::protocol::Decodable;

use super::{INLINE_BYTES, Partition, Writer};
use crate::wire::Api;

fn joined(pieces: &[Bytes]) -> Bytes {
    let mut whole = BytesMut::new();
    pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
    whole.freeze()
}

fn served(index: i32, records: usize, aborted: Option<Vec<(i64, i64)>>) -> Partition {
    Partition {
        index,
        error_code: 0,
        high_watermark: 100,
        last_stable_offset: 90,
        log_start_offset: 5,
        diverging: None,
        aborted,
        records: Bytes::from(vec![7; records]),
    }
}

fn topics() -> Vec<(String, Vec<Partition>)> {
    let many = (0..200).map(|at| (at, at * 2)).collect();
    let diverged = Partition { diverging: Some((3, 50)), ..served(4, 0, None) };
    vec![
        ("a".to_owned(), vec![served(0, 0, None), served(1, INLINE_BYTES, Some(Vec::new())), diverged]),
        ("b".repeat(249), vec![served(0, INLINE_BYTES + 1, Some(vec![(1000, 10), (1, 2)])), served(2, 9, Some(many))]),
        ("c".to_owned(), Vec::new()),
        ("d".to_owned(), vec![Partition::refused(3, 1, None), Partition::refused(9, 3, Some(Vec::new()))]),
        ("e".to_owned(), vec![served(0, 300_000, None)]),
    ]
}

/// What a client of this version reads of a partition.
fn as_read(mut partition: Partition, version: i16) -> Partition {
    if version < 5 {
        partition.log_start_offset = -1;
    }
    if version < 12 {
        partition.diverging = None;
    }
    partition
}

#[test]
fn every_version_reads_as_it_was_meant() {
    let versions = Api::Fetch.versions();
    for version in versions.lowest..=versions.highest {
        let mut writer = Writer::begin(version, (0, 77), topics().len());
        for (name, partitions) in topics() {
            writer.topic(&name, partitions.into_iter());
        }
        let mut body = joined(&writer.end());
        let read = FetchResponse::decode(&mut body, version).unwrap();
        assert!(body.is_empty(), "v{version}: {} bytes too many", body.len());
        let session_id = if version >= 7 { 77 } else { 0 };
        assert_eq!((read.throttle_time_ms, read.error_code, read.session_id), (0, 0, session_id), "v{version}");
        let names = read.responses.iter().map(|topic| topic.topic.to_string()).collect::<Vec<_>>();
        assert_eq!(names, topics().into_iter().map(|(name, _)| name).collect::<Vec<_>>(), "v{version}");
        for (topic, (_, written)) in read.responses.into_iter().zip(topics()) {
            let read = topic.partitions.into_iter().map(|read| {
                assert_eq!(*read.preferred_read_replica, -1, "v{version}");
                let aborted = |all: Vec<kafka_protocol::messages::fetch_response::AbortedTransaction>| {
                    all.iter().map(|one| (*one.producer_id, one.first_offset)).collect()
                };
                let diverging = (read.diverging_epoch.epoch, read.diverging_epoch.end_offset);
                Partition {
                    index: read.partition_index,
                    error_code: read.error_code,
                    high_watermark: read.high_watermark,
                    last_stable_offset: read.last_stable_offset,
                    log_start_offset: read.log_start_offset,
                    diverging: (diverging != (-1, -1)).then_some(diverging),
                    aborted: read.aborted_transactions.map(aborted),
                    records: read.records.unwrap(),
                }
            });
            let expected = written.into_iter().map(|partition| as_read(partition, version));
            assert_eq!(read.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "v{version}");
        }
    }
}

/// F-707: no topics, no session.
#[test]
fn a_refusal_reads_as_one() {
    for version in 7..=12 {
        let mut body = joined(&Writer::refusal(version, 70));
        let read = FetchResponse::decode(&mut body, version).unwrap();
        assert_eq!((read.error_code, read.session_id, read.responses.len(), body.len()), (70, 0, 0, 0), "v{version}");
    }
}

#[test]
fn records_are_not_copied() {
    let records = Bytes::from(vec![1; INLINE_BYTES + 1]);
    let at = records.as_ptr();
    let mut writer = Writer::begin(12, (0, 0), 1);
    writer.topic("t", [Partition { records, ..served(0, 0, None) }].into_iter());
    assert!(writer.end().iter().any(|piece| piece.as_ptr() == at));
}

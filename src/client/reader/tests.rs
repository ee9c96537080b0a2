use kafka_protocol::messages::ProducerId;
use kafka_protocol::messages::fetch_response::AbortedTransaction;

use super::*;
use crate::client::records::Batch;
use crate::engine::Producer;
use crate::engine::batch::marker::Marker;
use crate::engine::batch::patch;

/// One piece of a log at the next free offset.
enum Piece {
    /// Values of a producer, within a transaction if it has an id.
    Data(i64, &'static [&'static str]),
    Marker(i64, Outcome),
}

fn log(pieces: &[Piece]) -> Bytes {
    let (mut log, mut offset) = (Vec::new(), 0);
    for piece in pieces {
        match piece {
            Piece::Data(id, values) => {
                let transactional = *id >= 0;
                let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
                let count = i64::try_from(values.len()).unwrap();
                let mut batch =
                    Batch { producer: (*id, 0, 0), transactional, wall_ms: 1, values }.encode().unwrap().to_vec();
                patch(&mut batch, offset, 0);
                log.extend(batch);
                offset = offset.checked_add(count).unwrap();
            }
            Piece::Marker(id, outcome) => {
                let producer = Producer { id: *id, epoch: 0 };
                let marker = Marker { producer, outcome: *outcome, coordinator_epoch: 0 };
                log.extend(marker::write(&marker, offset, 0, 1, false));
                offset = offset.checked_add(1).unwrap();
            }
        }
    }
    Bytes::from(log)
}

fn shown(pieces: &[Piece], aborted: &[(i64, i64)], isolation: Isolation, from: i64) -> (i64, u64, Vec<String>) {
    let transaction = |(id, first): &(i64, i64)| {
        AbortedTransaction::default().with_producer_id(ProducerId(*id)).with_first_offset(*first)
    };
    let own = PartitionData::default()
        .with_records(Some(log(pieces)))
        .with_aborted_transactions(Some(aborted.iter().map(transaction).collect()));
    let mut read = Read { part: Part::new("t", 0), next: from, end: 0, shown: 0, values: Vec::new() };
    show(&own, isolation, &mut read).unwrap();
    (read.next, read.shown, read.values.into_iter().map(|(_, value)| value).collect())
}

const COMMITTED: Isolation = Isolation::ReadCommitted;
const ALL: Isolation = Isolation::ReadUncommitted;

/// KIP-98: from its first offset to its marker, nothing of an aborted transaction is shown; all else is.
#[test]
fn aborted_records_and_markers_are_left_out() {
    let log = [
        Piece::Data(1, &["a0", "a1"]),
        Piece::Data(-1, &["plain"]),
        Piece::Data(2, &["b"]),
        Piece::Marker(1, Outcome::Abort),
        Piece::Marker(2, Outcome::Commit),
        Piece::Data(1, &["a2"]),
        Piece::Marker(1, Outcome::Commit),
    ];
    type Line = (Isolation, &'static [(i64, i64)], i64, u64, &'static [&'static str]);
    let lines: &[Line] = &[
        (COMMITTED, &[(1, 0)], 0, 3, &["plain", "b", "a2"]),
        (ALL, &[], 0, 5, &["a0", "a1", "plain", "b", "a2"]),
        (ALL, &[], 1, 4, &["a1", "plain", "b", "a2"]),
        (COMMITTED, &[(1, 0)], 3, 2, &["b", "a2"]),
        (COMMITTED, &[], 6, 1, &["a2"]),
        (COMMITTED, &[(1, 0), (2, 3)], 0, 2, &["plain", "a2"]),
    ];
    for (isolation, aborted, from, count, want) in lines {
        let want = (8, *count, want.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>());
        assert_eq!(shown(&log, aborted, *isolation, *from), want, "{isolation:?} {aborted:?} {from}");
    }
}

use bytes::Bytes;

use super::{Judged, is_transactional, one_producer, settled};
use crate::engine::batch::check::{Keys, Rules, Times, check};
use crate::engine::batch::samples::{header, seal};
use crate::engine::batch::{Header, checksum};
use crate::engine::{PartId, Refusal};
use crate::runtime::broker::Batch;
use kafka_protocol::messages::produce_request::PartitionProduceData;

/// One record without key and value, at the batch's own time.
const RECORD: &[u8] = &[12, 0, 0, 0, 1, 1, 0];

const RULES: Rules = Rules {
    max_message_bytes: 1 << 20,
    segment_bytes: 1 << 30,
    keys: Keys::Optional,
    times: Times::CreateTime,
    before_max_ms: i64::MAX,
    after_max_ms: i64::MAX,
    now_wall_ms: 1_700_000_000_000,
    produce_version: 9,
};

fn transactional(id: i64, epoch: i16) -> Header {
    Header { attributes: 1 << 4, producer_id: id, producer_epoch: epoch, base_sequence: 0, ..header(1) }
}

fn accepted(part: i64, header: Header) -> Judged {
    let batch = Batch { header, bytes: Bytes::new(), id: None, durable: true, times: Times::CreateTime };
    Judged::Accepted(PartId(part), batch)
}

#[test]
fn a_request_writes_for_one_transactional_producer() {
    let plain = header(1);
    for (rule, headers, refused) in [
        ("T-306 one", vec![transactional(1, 0), transactional(1, 0)], false),
        ("T-306 with a plain one", vec![transactional(1, 0), plain], false),
        ("T-306 two ids", vec![transactional(1, 0), transactional(2, 0)], true),
        ("T-306 two epochs", vec![transactional(1, 0), plain, transactional(1, 1)], true),
        ("none", vec![], false),
    ] {
        let judged = headers.into_iter().zip(1..).map(|(header, part)| accepted(part, header));
        for judged in one_producer(judged.collect()) {
            match judged {
                Judged::Accepted(..) => assert!(!refused, "{rule}"),
                Judged::Refused(why) => {
                    assert!(refused, "{rule}");
                    assert_eq!((why.refusal, why.log_start), (Refusal::InvalidProducerIdMapping, -1), "{rule}");
                }
            }
        }
    }
}

#[test]
fn the_transactional_bit_is_seen_before_anything_is_checked() {
    let of = |records: Option<Vec<u8>>| is_transactional(&partition(records));
    assert!(of(Some(seal(&transactional(1, 0), RECORD))), "T-301");
    assert!(!of(Some(seal(&header(1), RECORD))));
    assert!(!of(Some(vec![0xff; 60])));
    assert!(!of(None));
}

fn partition(records: Option<Vec<u8>>) -> PartitionProduceData {
    PartitionProduceData::default().with_records(records.map(Bytes::from))
}

#[test]
fn a_batch_is_cut_out_without_being_copied_unless_its_time_is_wrong() {
    let right = seal(&header(1), RECORD);
    let wrong = seal(&Header { max_timestamp: 5, ..header(1) }, RECORD);
    for (rule, batch, copied) in [("T-325", right.clone(), false), ("settled", wrong, true)] {
        let mut tailed = batch;
        tailed.extend_from_slice(&[0; 5]);
        let records = Bytes::from(tailed);
        let checked = check(Some(&records), &RULES).unwrap();
        let (header, bytes) = settled(Some(&records), checked);
        assert_eq!(bytes, right, "{rule}");
        assert_eq!(header.crc, checksum(&bytes), "{rule}");
        assert_eq!(bytes.as_ptr() != records.as_ptr(), copied, "{rule}");
    }
}

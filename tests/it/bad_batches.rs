//! Batches that no producer makes: each is refused by its code, nothing of it is stored, and what stands beside it in
//! the same request is.

use std::io::Write;
use std::net::SocketAddr;

use bytes::Bytes;
use kafka_protocol::messages::ProduceRequest;
use kafka_protocol::messages::produce_request::PartitionProduceData;

use crate::broker::TestBroker;
use crate::raw::Client;
use crate::raw::batch::{Batch, Codec, Pid, put_varint, seal};
use crate::raw::data::{Isolation, produce_request};

const ANYONE: Pid = Pid { id: 7_000, epoch: 0 };

/// Changes the bytes of a good batch; the checksum is made right again afterwards.
fn sealed(change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Batch::plain(3).bytes();
    change(&mut bytes);
    seal(&mut bytes);
    bytes
}

/// The same, and the checksum stays as it was.
fn unsealed(change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Batch::plain(3).bytes();
    change(&mut bytes);
    bytes
}

/// A batch of this codec around these bytes, said to be three records.
fn packed(codec: Codec, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Batch::plain(3).compressed(codec).bytes();
    bytes.truncate(61);
    bytes.extend_from_slice(payload);
    let length = i32::try_from(bytes.len() - 12).unwrap();
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    seal(&mut bytes);
    bytes
}

/// One bad and one good partition in a request of this version: the codes of both.
fn produce_both(client: &mut Client, version: i16, bad: Option<Vec<u8>>) -> (i16, i16) {
    let request: ProduceRequest = produce_request("t", 0, None, Vec::new());
    let mut topic = request.topic_data[0].clone();
    topic.partition_data[0].records = bad.map(Bytes::from);
    let good = PartitionProduceData::default().with_index(1).with_records(Some(Bytes::from(Batch::plain(1).bytes())));
    topic.partition_data.push(good);
    let answer = client.call(version, &request.with_topic_data(vec![topic]));
    let parts = &answer.responses[0].partition_responses;
    let code = |index| parts.iter().find(|part| part.index == index).unwrap().error_code;
    (code(0), code(1))
}

/// C-115, X-97.
#[test]
fn malformed_batches() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    assert_eq!(client.create_topic("t", 2), 0);
    let mut monster = Vec::new();
    put_varint(&mut monster, i64::from(i32::MAX));
    let rows: Vec<(&str, i16, Option<Vec<u8>>)> = vec![
        ("T-321 null", 87, None),
        ("T-321 empty", 87, Some(Vec::new())),
        ("T-321 half a batch", 87, Some(unsealed(|bytes| bytes.truncate(70)))),
        ("T-322 two batches", 87, Some([Batch::plain(1).bytes(), Batch::plain(1).bytes()].concat())),
        ("T-323 magic 0", 87, Some(unsealed(|bytes| bytes[16] = 0))),
        ("T-323 magic 1", 87, Some(unsealed(|bytes| bytes[16] = 1))),
        ("T-323 magic 3", 2, Some(unsealed(|bytes| bytes[16] = 3))),
        ("T-323 magic -1", 2, Some(unsealed(|bytes| bytes[16] = 0xff))),
        ("T-323 negative length", 2, Some(unsealed(|bytes| bytes[8] = 0x80))),
        ("T-323 no length", 2, Some(unsealed(|bytes| bytes[8..12].fill(0)))),
        ("T-330 base offset", 87, Some(unsealed(|bytes| bytes[7] = 1))),
        ("T-332 checksum", 2, Some(unsealed(|bytes| bytes[65] ^= 1))),
        ("T-333 count and delta", 87, Some(sealed(|bytes| bytes[26] = 9))),
        ("T-333 count 0", 87, Some(sealed(|bytes| bytes[57..61].fill(0)))),
        ("T-333 greatest count", 87, Some(sealed(|bytes| bytes[57..61].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff])))),
        ("T-334 control", 87, Some(sealed(|bytes| bytes[22] |= 0x20))),
        ("T-335 no sequence", 87, Some(Batch { sequence: -1, ..Batch::idempotent(ANYONE, 0, 1) }.bytes())),
        ("T-336 a record beyond the batch", 87, Some(sealed(|bytes| bytes[61] = 0x7e))),
        ("T-336 a record of two gigabytes", 87, Some(packed(Codec::None, &monster))),
        ("T-336 not what the codec makes", 87, Some(packed(Codec::Gzip, b"no gzip"))),
        ("T-346 codec 5", 87, Some(sealed(|bytes| bytes[22] = 5))),
        ("T-346 codec 7", 87, Some(sealed(|bytes| bytes[22] = 7))),
    ];
    let count = rows.len();
    for (name, code, bytes) in rows {
        assert_eq!(produce_both(&mut client, 9, bytes), (code, 0), "{name}");
    }
    let zstd = Batch::plain(3).compressed(Codec::Zstd).bytes();
    assert_eq!(produce_both(&mut client, 6, Some(zstd)), (76, 0), "T-324");
    assert_eq!(client.read_all("t", 0, Isolation::ReadUncommitted), Vec::<String>::new(), "nothing bad is stored");
    assert_eq!(client.read_all("t", 1, Isolation::ReadUncommitted).len(), count + 1, "everything good is");
    for codec in [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        assert_eq!(client.produce("t", 0, None, &Batch::plain(3).compressed(codec)).code, 0, "C-110, {codec:?}");
    }
    assert_eq!(client.read_all("t", 0, Isolation::ReadUncommitted).len(), 15, "what is compressed is read again");
}

/// One record of zeros that unpacks to more than is taken and packs well. Made piece by piece: who measures memory
/// sees the broker's.
fn bomb(codec: Codec) -> Vec<u8> {
    match codec {
        Codec::None => packed(codec, &[]),
        Codec::Gzip => {
            let encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packed(codec, &drain(encoder).finish().unwrap())
        }
        Codec::Lz4 => packed(codec, &drain(lz4_flex::frame::FrameEncoder::new(Vec::new())).finish().unwrap()),
        Codec::Zstd => packed(codec, &drain(zstd::Encoder::new(Vec::new(), 3).unwrap()).finish().unwrap()),
        // Not larger than a batch may be, packed.
        Codec::Snappy => packed(codec, &snappy_zeros(16 << 20)),
    }
}

/// A record's beginning and sixty-five megabytes of its value through this encoder.
fn drain<W: Write>(mut encoder: W) -> W {
    const VALUE_BYTES: i64 = 65 << 20;
    let mut record = Vec::new();
    put_varint(&mut record, VALUE_BYTES + 9);
    record.extend([0, 0, 0]);
    put_varint(&mut record, -1);
    put_varint(&mut record, VALUE_BYTES);
    encoder.write_all(&record).unwrap();
    let zeros = vec![0; 64 << 10];
    for _ in 0..VALUE_BYTES / (64 << 10) {
        encoder.write_all(&zeros).unwrap();
    }
    encoder
}

/// As many zeros: the length, one zero, and copies of it by sixty-four.
fn snappy_zeros(count: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = count;
    while rest >= 0x80 {
        bytes.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
        rest >>= 7;
    }
    bytes.extend([u8::try_from(rest).unwrap(), 0, 0]);
    for _ in 0..(count - 1) / 64 {
        bytes.extend([0xfe, 1, 0]);
    }
    let left = u8::try_from((count - 1) % 64).unwrap();
    if left > 0 {
        bytes.extend([((left - 1) << 2) | 2, 1, 0]);
    }
    bytes
}

/// C-116: what expands beyond all bounds is refused, also when it comes from all sides.
pub(crate) fn bombs(address: SocketAddr) {
    let mut client = Client::connect(address);
    assert_eq!(client.create_topic("t", 2), 0);
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let bytes = bomb(codec);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let (bad, good) = produce_both(&mut Client::connect(address), 9, Some(bytes.clone()));
                    assert!(matches!(bad, 2 | 10 | 87), "C-116, {codec:?}: error {bad}");
                    assert_eq!(good, 0, "C-116, {codec:?}");
                });
            }
        });
    }
    let chunk = [b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01".as_slice(), &[0xff, 0xff, 0xff, 0xff, 1, 2, 3]].concat();
    assert_eq!(produce_both(&mut client, 9, Some(packed(Codec::Snappy, &chunk))).0, 87, "C-116: a chunk of length -1");
    assert_eq!(client.read_all("t", 0, Isolation::ReadUncommitted), Vec::<String>::new());
}

#[test]
fn snappy_zeros_are_what_they_say() {
    assert_eq!(snap::raw::Decoder::new().decompress_vec(&snappy_zeros(1000)).unwrap(), vec![0; 1000]);
}

//! Record batches as trees: written with whatever damage a script asks for, and read field by field.

use crate::codec::{Bytes, hex, put_varint, unhex};
use crate::tree::{Tree, Unreadable};

/// The length of a batch up to its records.
const HEADER: usize = 61;
const ABSENT: [&str; 4] = ["none", "gzip", "snappy", "lz4"];
/// What a script may say of a batch.
const KNOWN: &str = "base epoch magic crc attributes txn control codec last time max producer producerEpoch seq count \
                     records values size cut tail hex key";

/// The bytes of a list of batches, made `now` unless they say otherwise, or of the hexadecimal text that stands for them.
pub(crate) fn encode(value: &Tree, now_ms: i64) -> Result<Vec<u8>, Unreadable> {
    if let Some(digits) = value.as_text() {
        return unhex(digits);
    }
    let list = value.as_list().ok_or_else(|| Unreadable("batches are wanted".to_owned()))?;
    let batches = list.iter().map(|of| batch(of, now_ms)).collect::<Result<Vec<_>, _>>()?;
    Ok(batches.concat())
}

fn batch(of: &Tree, now_ms: i64) -> Result<Vec<u8>, Unreadable> {
    let fields = of.as_fields().ok_or_else(|| Unreadable("a batch is wanted".to_owned()))?;
    if let Some((name, _)) = fields.iter().find(|(name, _)| !KNOWN.split_whitespace().any(|known| known == name)) {
        return Err(Unreadable(format!("a batch has no `{name}`")));
    }
    let int = |name: &str, default: i64| of.get(name).and_then(Tree::as_int).unwrap_or(default);
    let is = |name: &str| of.get(name) == Some(&Tree::Bool(true));
    let time = int("time", now_ms);
    let records = listed(of);
    let count = i64::try_from(records.len()).unwrap();
    let codec = of.get("codec").and_then(Tree::as_text).unwrap_or("none");
    let number = ABSENT.iter().position(|name| *name == codec).unwrap_or(4);
    let flags = number as i64 | i64::from(is("txn")) << 4 | i64::from(is("control")) << 5;
    let mut body = Vec::new();
    put(2, int("attributes", flags), &mut body);
    put(4, int("last", count - 1), &mut body);
    put(8, time, &mut body);
    let latest = records.iter().map(|record| time + record.get("time").and_then(Tree::as_int).unwrap_or(0)).max();
    put(8, int("max", latest.unwrap_or(time)), &mut body);
    put(8, int("producer", -1), &mut body);
    put(2, int("producerEpoch", -1), &mut body);
    put(4, int("seq", -1), &mut body);
    put(4, int("count", count), &mut body);
    let mut packed = Vec::new();
    for (n, record) in records.iter().enumerate() {
        packed.extend(self::record(n, record)?);
    }
    body.extend(compressed(codec, packed)?);
    let mut bytes = Vec::new();
    put(8, int("base", 0), &mut bytes);
    put(4, int("size", i64::try_from(body.len()).unwrap() + 9), &mut bytes);
    put(4, int("epoch", -1), &mut bytes);
    put(1, int("magic", 2), &mut bytes);
    put(4, int("crc", i64::from(crc32c::crc32c(&body))), &mut bytes);
    bytes.extend(body);
    bytes.truncate(bytes.len() - usize::try_from(int("cut", 0)).unwrap());
    bytes.extend(unhex(of.get("tail").and_then(Tree::as_text).unwrap_or_default())?);
    Ok(bytes)
}

/// The records of a batch: `values` for those that are nothing but a value.
fn listed(of: &Tree) -> Vec<Tree> {
    let values = of.get("values").and_then(Tree::as_list).unwrap_or_default();
    let plain = values.iter().map(|value| Tree::Fields(vec![("value".to_owned(), value.clone())]));
    plain.chain(of.get("records").and_then(Tree::as_list).unwrap_or_default().iter().cloned()).collect()
}

fn compressed(codec: &str, records: Vec<u8>) -> Result<Vec<u8>, Unreadable> {
    use std::io::Write;
    let failed = |error: std::io::Error| Unreadable(error.to_string());
    match codec {
        "none" => Ok(records),
        "gzip" => {
            let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            writer.write_all(&records).map_err(failed)?;
            writer.finish().map_err(failed)
        }
        "zstd" => zstd::encode_all(records.as_slice(), 1).map_err(failed),
        other => Err(Unreadable(format!("`{other}` is not written here"))),
    }
}

fn record(n: usize, of: &Tree) -> Result<Vec<u8>, Unreadable> {
    let int = |name: &str, default: i64| of.get(name).and_then(Tree::as_int).unwrap_or(default);
    let mut body = vec![0];
    put_varint(int("time", 0), &mut body);
    put_varint(int("offset", i64::try_from(n).unwrap()), &mut body);
    for name in ["key", "value"] {
        match of.get(name) {
            None | Some(Tree::Null) => put_varint(-1, &mut body),
            Some(value) => {
                let text = value.as_text().map_or_else(|| value.compact(), str::to_owned);
                put_varint(int("claimed", i64::try_from(text.len()).unwrap()), &mut body);
                body.extend(text.as_bytes());
            }
        }
    }
    put_varint(int("headers", 0), &mut body);
    body.extend(unhex(of.get("tail").and_then(Tree::as_text).unwrap_or_default())?);
    let mut bytes = Vec::new();
    put_varint(int("size", i64::try_from(body.len()).unwrap()), &mut bytes);
    bytes.extend(body);
    Ok(bytes)
}

fn put(size: usize, number: i64, out: &mut Vec<u8>) {
    out.extend(&number.to_be_bytes()[8 - size..]);
}

/// The batches in `bytes`; what is left over at the end is no whole one.
pub(crate) fn decode(bytes: &[u8]) -> Result<Tree, Unreadable> {
    let mut list = Vec::new();
    let mut rest = Bytes(bytes);
    while rest.0.len() >= HEADER {
        let mut front = Bytes(&rest.0[8..12]);
        let size = usize::try_from(front.int(4)?).unwrap_or(usize::MAX).saturating_add(12);
        if rest.0.len() < size {
            break;
        }
        list.push(read(rest.take(size)?)?);
    }
    Ok(Tree::List(list))
}

fn read(bytes: &[u8]) -> Result<Tree, Unreadable> {
    let mut rest = Bytes(bytes);
    let mut found: Vec<(&str, Tree)> = vec![("baseOffset", Tree::Int(rest.int(8)?))];
    found.push(("batchLength", Tree::Int(rest.int(4)?)));
    found.push(("partitionLeaderEpoch", Tree::Int(rest.int(4)?)));
    found.push(("magic", Tree::Int(rest.int(1)?)));
    let crc = rest.int(4)?;
    if crc & 0xffff_ffff != i64::from(crc32c::crc32c(rest.0)) {
        found.push(("crc", Tree::text("wrong")));
    }
    let attributes = rest.int(2)?;
    let codec = attributes & 7;
    found.push(("attributes", Tree::Int(attributes)));
    for (name, size) in [("lastOffsetDelta", 4), ("baseTimestamp", 8), ("maxTimestamp", 8), ("producerId", 8)] {
        found.push((name, Tree::Int(rest.int(size)?)));
    }
    for (name, size) in [("producerEpoch", 2), ("baseSequence", 4), ("recordCount", 4)] {
        found.push((name, Tree::Int(rest.int(size)?)));
    }
    let unpacked = unpacked(codec, rest.0)?;
    let mut packed = Bytes(&unpacked);
    let mut records = Vec::new();
    while !packed.0.is_empty() {
        records.push(read_record(&mut packed, attributes & 0x20 != 0)?);
    }
    found.push(("records", Tree::List(records)));
    Ok(Tree::Fields(found.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()))
}

fn unpacked(codec: i64, bytes: &[u8]) -> Result<Vec<u8>, Unreadable> {
    use std::io::Read;
    let failed = |error: std::io::Error| Unreadable(error.to_string());
    let mut out = Vec::new();
    match codec {
        0 => out.extend(bytes),
        1 => drop(flate2::read::GzDecoder::new(bytes).read_to_end(&mut out).map_err(failed)?),
        4 => out = zstd::decode_all(bytes).map_err(failed)?,
        other => return Err(Unreadable(format!("codec {other} is not read here"))),
    }
    Ok(out)
}

fn read_record(rest: &mut Bytes<'_>, is_control: bool) -> Result<Tree, Unreadable> {
    let size = usize::try_from(rest.varint()?).map_err(|_| Unreadable("a record without size".to_owned()))?;
    let mut own = Bytes(rest.take(size)?);
    own.take(1)?;
    let mut found = vec![("timestampDelta", Tree::Int(own.varint()?)), ("offsetDelta", Tree::Int(own.varint()?))];
    for name in ["key", "value"] {
        let bytes = match usize::try_from(own.varint()?) {
            Ok(length) => Some(own.take(length)?),
            Err(_) => None,
        };
        match bytes {
            Some(bytes) if is_control && bytes.len() == 6 => {
                found.push(("version", Tree::Int(Bytes(bytes).int(2)?)));
                found.push(("coordinatorEpoch", Tree::Int(Bytes(&bytes[2..]).int(4)?)));
            }
            Some(bytes) if is_control => found.push((name, Tree::Text(hex(bytes)))),
            Some(bytes) => found.push((name, Tree::Text(String::from_utf8_lossy(bytes).into_owned()))),
            None => found.push((name, Tree::Null)),
        }
    }
    found.push(("headers", Tree::Int(own.varint()?)));
    Ok(Tree::Fields(found.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()))
}

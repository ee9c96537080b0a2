//! Bytes no client sends: whatever comes, the connection is closed, memory stays where it is, and others are served.

mod shapes;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::{Buf, BufMut};
use kafka_protocol::messages::ApiVersionsResponse;
use kafka_protocol::protocol::Decodable;
use oncelog::wire::Api;

use crate::bad_batches::bombs;
use crate::broker::TestBroker;
use crate::raw::{Client, framed, text};
use shapes::{Weak, default_body, weak_spot};

/// Most that the peak of the process's memory may rise, client side and all: the largest frame sent is 4 MiB.
const FRAMES_KIB: u64 = 48 << 10;

/// The same with bombs: each of the broker's two threads may hold one window of what it unpacks, 32 MiB at the most.
const WINDOWS_KIB: u64 = FRAMES_KIB + 2 * (32 << 10);

/// Longest that a client of good manners may have waited meanwhile.
const SLOWEST: Duration = Duration::from_secs(5);

/// Unknown tags in one section.
const TAGS: u32 = 1_000_000;

/// Every version of every API that is served.
fn served() -> impl Iterator<Item = (Api, i16)> {
    Api::ALL.iter().flat_map(|api| (api.versions().lowest..=api.versions().highest).map(|version| (*api, version)))
}

/// A header with this client id and an empty tag section where there is one.
fn header(key: i16, version: i16, client_id: Option<&str>, flexible: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.put_i16(key);
    bytes.put_i16(version);
    bytes.put_i32(77);
    match client_id {
        None => bytes.put_i16(-1),
        Some(id) => {
            bytes.put_i16(i16::try_from(id.len()).unwrap());
            bytes.put_slice(id.as_bytes());
        }
    }
    if flexible {
        bytes.put_u8(0);
    }
    bytes
}

fn request(api: Api, version: i16, body: &[u8]) -> Vec<u8> {
    let mut bytes = header(api.key(), version, None, api.is_flexible(version));
    bytes.put_slice(body);
    bytes
}

/// Sends these bytes and nothing more, and expects the end without a byte of an answer.
fn closes(address: SocketAddr, bytes: &[u8], what: &str) {
    let mut client = Client::connect(address);
    client.send_bytes(bytes);
    let received = client.ended().received;
    assert!(received.is_empty(), "{what}: answered with {} bytes", received.len());
}

/// What other protocols say, and lengths that no frame has (C-107, V-101, V-1003).
fn odd_lengths(address: SocketAddr) {
    closes(address, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP");
    closes(address, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS");
    closes(address, b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n", "PROXY protocol");
    for length in [i32::MAX, i32::MIN, -1, 0, 1, 9, 100 << 20] {
        let mut bytes = length.to_be_bytes().to_vec();
        bytes.put_slice(&[0; 64]);
        closes(address, &bytes, &format!("a length of {length}"));
    }
    let mut large = (16_i32 << 20).to_be_bytes().to_vec();
    large.put_slice(&header(3, 9, None, true));
    let mut client = Client::connect(address);
    client.send_bytes(&large);
    client.shut();
    assert!(client.ended().received.is_empty(), "a frame of which hardly anything comes");
}

/// Keys and versions that are not offered (C-112).
fn odd_versions(address: SocketAddr) {
    for key in [-1, 4, 7, 9999, i16::MAX, i16::MIN] {
        closes(address, &framed(&header(key, 0, None, false)), &format!("key {key}"));
    }
    for api in Api::ALL.iter().filter(|api| **api != Api::ApiVersions) {
        for version in [api.versions().lowest - 1, api.versions().highest + 1, i16::MAX, i16::MIN] {
            let bytes = framed(&header(api.key(), version, None, api.is_flexible(version)));
            closes(address, &bytes, &format!("{api} in version {version}"));
        }
    }
}

/// Every request cut off at every byte (V-105).
fn truncated(address: SocketAddr) {
    for (api, version) in served() {
        let whole = request(api, version, &default_body(api, version));
        for length in 0..whole.len() {
            closes(address, &framed(&whole[..length]), &format!("{length} bytes of {api} {version}"));
        }
        let mut client = Client::connect(address);
        client.send_bytes(&framed(&whole)[..whole.len()]);
        client.shut();
        assert!(client.ended().received.is_empty(), "{api} {version}, broken off");
    }
}

/// Counts and lengths that no frame could hold, where the request's first array or text is (C-107).
fn monstrous_counts(address: SocketAddr) {
    for (api, version) in served() {
        let flexible = api.is_flexible(version);
        let (front, counts): (Vec<u8>, &[&[u8]]) = match weak_spot(api, version) {
            Weak::Nowhere => continue,
            Weak::Array(front) | Weak::Text(front) if flexible => {
                (front, &[&[0xff, 0xff, 0xff, 0xff, 0x0f], &[0xff, 0xff, 0xff, 0xff, 0x07], &[0xff; 12], &[0xc8, 1]])
            }
            Weak::Array(front) => (front, &[&[0x7f, 0xff, 0xff, 0xff], &[0xff, 0xff, 0xff, 0xfe], &[0, 0, 0, 9]]),
            Weak::Text(front) => (front, &[&[0x7f, 0xff], &[0xff, 0xfe], &[0x80, 0]]),
        };
        for count in counts {
            let body = [front.as_slice(), count, &[0; 8]].concat();
            closes(address, &framed(&request(api, version, &body)), &format!("{api} {version} counting {count:x?}"));
        }
    }
}

/// A million unknown tags, in the header and behind the body.
fn countless_tags(address: SocketAddr) {
    let mut tags = Vec::new();
    put_unsigned(&mut tags, TAGS);
    for tag in 0..TAGS {
        put_unsigned(&mut tags, 100 + tag);
        tags.push(0);
    }
    for (api, version) in served().filter(|(api, version)| api.is_flexible(*version)) {
        let body = default_body(api, version);
        let in_header = [header(api.key(), version, None, false).as_slice(), &tags, &body].concat();
        closes(address, &framed(&in_header), &format!("{api} {version}, a header of tags"));
        let (last, front) = body.split_last().unwrap();
        assert_eq!(*last, 0, "{api} {version}: an empty tag section ends a body");
        let behind = request(api, version, &[front, &tags].concat());
        closes(address, &framed(&behind), &format!("{api} {version}, a body of tags"));
    }
}

fn put_unsigned(out: &mut Vec<u8>, mut rest: u32) {
    while rest >= 0x80 {
        out.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
        rest >>= 7;
    }
    out.push(u8::try_from(rest).unwrap());
}

/// The process's peak of resident memory.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Asks over and over until it is told to stop; says how often it was answered, and how long the slowest answer took.
fn mannered(broker: &TestBroker, stop: &AtomicBool) -> (u32, Duration) {
    let mut client = broker.connect();
    let (mut answers, mut slowest) = (0, Duration::ZERO);
    while !stop.load(Ordering::Acquire) {
        #[expect(clippy::disallowed_methods, reason = "a test may look at the clock")]
        let asked = Instant::now();
        assert_eq!(client.metadata(Some(&["witness"]), true).topics[0].error_code, 0);
        slowest = slowest.max(asked.elapsed());
        answers += 1;
    }
    (answers, slowest)
}

type Attack = fn(SocketAddr);

/// Ends the witness also when an attack succeeds.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
#[ignore = "measures its process's memory, so it needs one of its own: `hostile_bytes` starts it"]
fn in_a_process_of_its_own() {
    let broker = TestBroker::start();
    let stop = AtomicBool::new(false);
    let attacks: [(&str, u64, Attack); 6] = [
        ("odd lengths", FRAMES_KIB, odd_lengths),
        ("odd versions", FRAMES_KIB, odd_versions),
        ("truncated requests", FRAMES_KIB, truncated),
        ("monstrous counts", FRAMES_KIB, monstrous_counts),
        ("countless tags", FRAMES_KIB, countless_tags),
        ("bombs", WINDOWS_KIB, bombs),
    ];
    broker.connect().metadata(Some(&["witness"]), true);
    let before = peak_kib();
    std::thread::scope(|scope| {
        let witness = scope.spawn(|| mannered(&broker, &stop));
        let stopping = StopAtEnd(&stop);
        for (name, most, attack) in attacks {
            attack(broker.address());
            let growth = peak_kib() - before;
            assert!(growth < most, "{name}: {growth} KiB more memory");
        }
        drop(stopping);
        let (answers, slowest) = witness.join().unwrap();
        assert!(answers > 100 && slowest < SLOWEST, "{answers} answers meanwhile, the slowest after {slowest:?}");
    });
}

/// C-107, C-112, C-116, P8.
#[test]
fn hostile_bytes() {
    let this = std::env::current_exe().unwrap();
    let test = ["--exact", "hostile::in_a_process_of_its_own", "--ignored", "--nocapture"];
    let output = Command::new(this).args(test).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// C-108, V-120: an answer of version 0 with one row, and the connection stays.
#[test]
fn api_versions_of_the_future() {
    let broker = TestBroker::start();
    let mut client = broker.connect();
    for version in [4, 5, 127, i16::MAX, -1] {
        let mut bytes = header(18, version, Some("tomorrow"), version >= 3);
        bytes.put_slice(b"\xff\xff whatever this is");
        client.send_bytes(&framed(&bytes));
        let mut frame = client.receive_frame();
        assert_eq!(frame.get_i32(), 77, "the response header is of version 0");
        let answer = ApiVersionsResponse::decode(&mut frame, 0).unwrap();
        assert!(!frame.has_remaining());
        let rows: Vec<_> = answer.api_keys.iter().map(|row| (row.api_key, row.min_version, row.max_version)).collect();
        assert_eq!((answer.error_code, rows), (35, vec![(18, 0, 3)]), "version {version}");
        assert_eq!(client.api_versions().error_code, 0, "version {version}: the connection stays");
    }
}

/// C-111: every API in every version, by a client without a name: what it asks is no reason to close the connection.
#[test]
fn clients_without_a_name() {
    let broker = TestBroker::start();
    for (api, version) in served() {
        for client_id in [None, Some("")] {
            let mut bytes = header(api.key(), version, client_id, api.is_flexible(version));
            bytes.put_slice(&default_body(api, version));
            let mut client = broker.connect();
            client.send_bytes(&framed(&bytes));
            let mut probe = header(18, 0, client_id, false);
            probe[4..8].copy_from_slice(&78_i32.to_be_bytes());
            client.send_bytes(&framed(&probe));
            let mut frame = client.receive_frame();
            if frame.get_i32() == 77 {
                frame = client.receive_frame();
                assert_eq!(frame.get_i32(), 78, "{api} {version} of {client_id:?}");
            }
        }
    }
}

/// C-119: names that would forge a line of the log or of the metrics, or climb out of a directory.
#[test]
fn names_that_are_not_names() {
    let broker = TestBroker::start();
    let names = ["\n2026-01-01 INFO fake", "\u{1b}[2J\u{7}", "quote\" }\n oncelog_fake 1", "../../x", "\0", "\r"];
    for name in names {
        let mut client = broker.connect().named(Some(name));
        let answer = client.metadata(Some(&[name]), true);
        assert_eq!((answer.topics[0].error_code, answer.topics[0].name.clone().unwrap().0), (17, text(name)));
        assert_eq!(client.create_topic(name, 1), 17, "{name:?}");
        let (code, _) = client.init_producer(Some(name), 60_000);
        assert_eq!(code, 0, "{name:?} is a transactional id like any other");
    }
    let mut bytes = header(3, 0, None, false);
    bytes.put_slice(&[0, 0, 0, 1, 0, 2, 0xc3, 0x28]);
    closes(broker.address(), &framed(&bytes), "a name that is not UTF-8");
    let metrics = scrape(broker.admin());
    let line = |line: &&str| !(line.starts_with("# ") || line.starts_with("oncelog_") || line.starts_with("process_"));
    let odd: Vec<_> = metrics.lines().filter(|text| line(text) || text.contains("fake")).collect();
    assert!(odd.is_empty() && !metrics.is_empty(), "lines that are no metrics: {odd:?}");
    let entries = std::fs::read_dir(broker.dir().path()).unwrap();
    let beside: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(beside, ["data"], "nothing climbs out of the data directory");
}

/// The body of the admin port's metrics.
fn scrape(admin: SocketAddr) -> String {
    let mut stream = TcpStream::connect(admin).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(!head.to_ascii_lowercase().contains("transfer-encoding"), "{head}");
    body.to_owned()
}

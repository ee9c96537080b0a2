//! Traces: every span of a transaction arrives, though the broker is told to stop right behind it; and a collector that
//! is slow or away costs nobody anything.

mod collector;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::process::child::{Server, eventually, free_port, now};
use crate::process::{serve, serve_among};
use crate::raw::Client;
use crate::raw::batch::{Batch, Codec};
use collector::{Collector, Manners, Span};

const SERVER: i32 = 2;
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// What the end may take that waits for a collector in vain: its five seconds, and a busy machine.
const BOUND: Duration = Duration::from_secs(14);

/// The context of a producer of ours, and what its records carry.
fn context(n: usize) -> ((String, String), String) {
    let (trace, span) = (format!("{:032x}", 0xabc0 + n), format!("{:016x}", 0xdef0 + n));
    let header = format!("00-{trace}-{span}-01");
    ((trace, span), header)
}

/// A transaction over three partitions, one of them packed, then one that is ended by the next owner of its id.
fn two_transactions(client: &mut Client) {
    assert_eq!(client.create_topic("out", 3), 0);
    let producer = client.owner("paying");
    assert_eq!(client.add_partitions("paying", producer, &[("out", 0), ("out", 1), ("out", 2)]), [0; 3]);
    for part in 0..3 {
        let (_, header) = context(usize::try_from(part).unwrap());
        let batch = Batch::transactional(producer, 0, 2).headed("traceparent", &header).headed("other", "x");
        let batch = if part == 2 { batch.compressed(Codec::Gzip) } else { batch };
        assert_eq!(client.produce("out", part, Some("paying"), &batch).code, 0);
    }
    client.end_txn_surely("paying", producer, true);
    let old = client.owner("taken");
    assert_eq!(client.add_partitions("taken", old, &[("out", 1)]), [0]);
    let batch = Batch::transactional(old, 0, 1).headed("traceparent", "00-not-one-01");
    assert_eq!(client.produce("out", 1, Some("taken"), &batch).code, 0);
    client.owner("taken");
    assert_eq!(client.end_txn("taken", old, true), 90, "P4");
}

fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

fn transaction<'a>(spans: &'a [Span], id: &str) -> &'a Span {
    let all = named(spans, "transaction");
    let own: Vec<_> = all.into_iter().filter(|span| span.says("kafka.transactional_id") == id).collect();
    assert_eq!(own.len(), 1, "one trace of {id}: {own:?}");
    own[0]
}

/// The spans of its trace: the three phases belong to it, and a marker in each partition to the second.
fn check_phases(spans: &[Span], root: &Span, places: &[&str]) {
    let inside: Vec<_> = spans.iter().filter(|span| span.trace == root.trace && span.id != root.id).collect();
    assert_eq!(inside.len(), 3 + places.len(), "{inside:?}");
    let phase = |name: &str| *inside.iter().find(|span| span.name == name).unwrap();
    let (prepare, markers, complete) = (phase("prepare"), phase("markers"), phase("complete"));
    for phase in [prepare, markers, complete] {
        assert_eq!(phase.parent, root.id, "{phase:?}");
    }
    let times = [prepare.times.0, prepare.times.1, markers.times.1, complete.times.1];
    assert!(root.times.0 <= times[0] && times.is_sorted(), "{root:?} {times:?}");
    assert_eq!((prepare.times.1, markers.times.1), (markers.times.0, complete.times.0));
    assert_eq!(complete.times.1, root.times.1);
    let mut marked: Vec<_> = inside.iter().filter(|span| span.name == "marker").collect();
    marked.sort_by_key(|span| span.says("messaging.destination.partition.id"));
    let parts: Vec<_> = marked.iter().map(|span| span.says("messaging.destination.partition.id")).collect();
    assert_eq!(parts, places);
    for marker in marked {
        assert_eq!((marker.parent.as_str(), marker.failed), (markers.id.as_str(), false), "{marker:?}");
        assert_eq!(marker.says("messaging.destination.name"), "out");
        assert!(markers.times.0 <= marker.times.0 && marker.times.1 <= markers.times.1, "{marker:?} {markers:?}");
    }
    let happened = |span: &Span, name: &str| span.events.iter().filter(|(event, _)| event == name).count();
    assert_eq!(happened(complete, "marker on disk"), places.len(), "{complete:?}");
    assert_eq!((happened(prepare, "asked"), happened(prepare, "decision stored")), (1, 1), "{prepare:?}");
}

fn check_committed(spans: &[Span]) {
    let root = transaction(spans, "paying");
    check_phases(spans, root, &["0", "1", "2"]);
    assert_eq!((root.parent.as_str(), root.failed), ("", false));
    assert_eq!(
        (root.says("oncelog.transaction.outcome"), root.says("oncelog.transaction.cause")),
        ("commit", "client")
    );
    let produced = named(spans, "Produce");
    assert_eq!(produced.len(), 4);
    for n in 0..3 {
        let partition = n.to_string();
        let of = |span: &&&Span| {
            span.says("messaging.destination.partition.id") == partition
                && span.says("kafka.transactional_id") == "paying"
        };
        let request = produced.iter().find(of).unwrap();
        assert_eq!(request.says("messaging.batch.message_count"), "2", "{request:?}");
        assert!(root.points_to(request) && request.points_to(root), "{root:?} {request:?}");
        let (from, _) = context(n);
        assert!(root.links.contains(&from) && request.links.contains(&from), "{n}: {root:?} {request:?}");
    }
    assert_eq!(root.links.len(), 6, "{root:?}");
    for api in ["AddPartitionsToTxn", "EndTxn"] {
        let of_it = |span: &&&Span| span.says("kafka.transactional_id") == "paying";
        let request = *named(spans, api).iter().find(of_it).unwrap();
        assert!(request.points_to(root), "{request:?}");
    }
}

fn check_aborted(spans: &[Span]) {
    let root = transaction(spans, "taken");
    check_phases(spans, root, &["1"]);
    assert!(root.failed, "nobody asked for it");
    assert_eq!(
        (root.says("oncelog.transaction.outcome"), root.says("oncelog.transaction.cause")),
        ("abort", "new_owner")
    );
    let fenced = root.events.iter().find(|(name, _)| name == "fenced");
    assert!(fenced.is_some_and(|(_, values)| values.contains(&"InitProducerId".to_owned())), "{root:?}");
    assert_eq!(root.links.len(), 1, "what is no traceparent points nowhere: {root:?}");
    let refused: Vec<_> = named(spans, "EndTxn").into_iter().filter(|span| span.failed).collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(
        (refused[0].says("error.type"), refused[0].says("kafka.transactional_id")),
        ("PRODUCER_FENCED", "taken")
    );
}

fn check_requests(spans: &[Span], port: u16) {
    for (api, count) in [("CreateTopics", 1), ("AddPartitionsToTxn", 2), ("Produce", 4), ("EndTxn", 2)] {
        assert!(named(spans, api).len() >= count, "{api}");
    }
    for span in spans.iter().filter(|span| span.kind == SERVER) {
        assert_eq!(span.says("messaging.system"), "kafka", "{span:?}");
        assert_eq!(span.says("network.peer.address"), "127.0.0.1", "{span:?}");
        assert_eq!(span.says("server.port"), port.to_string(), "{span:?}");
        assert!(
            !span.says("kafka.api_version").is_empty() && !span.says("kafka.correlation_id").is_empty(),
            "{span:?}"
        );
        assert!(span.times.0 <= span.times.1 && span.parent.is_empty(), "{span:?}");
    }
    let added = named(spans, "AddPartitionsToTxn");
    let paying = added.iter().find(|span| span.says("kafka.transactional_id") == "paying").unwrap();
    assert_eq!((paying.says("kafka.partitions"), paying.says("messaging.destination.name")), ("3", "out"));
    let start = named(spans, "start")[0];
    for part in ["open data directory", "recover"] {
        let span = named(spans, part)[0];
        assert_eq!((&span.trace, &span.parent), (&start.trace, &start.id), "{span:?}");
    }
}

#[test]
fn every_span_of_a_transaction_arrives() {
    for settings in [&[][..], &["marker_sync=redo"]] {
        let collector = Collector::listen(Manners::Takes);
        // No batch leaves by itself while the test runs: what arrives was sent at the end.
        let slow = [(ENDPOINT, &*collector.endpoint()), ("OTEL_BSP_SCHEDULE_DELAY", "600000")];
        let mut server = serve_among(settings, &slow);
        two_transactions(&mut server.connect());
        assert_eq!(server.terminate().code(), Some(0), "{}", server.log());
        let (spans, resources) = collector.spans();
        for resource in &resources {
            assert_eq!(resource.get("service.name").map(String::as_str), Some("oncelog"), "{resource:?}");
            assert!(resource.contains_key("service.version") && resource.contains_key("service.instance.id"));
        }
        check_requests(&spans, server.address().port());
        check_committed(&spans);
        check_aborted(&spans);
        let (log, aborted) = (server.log(), transaction(&spans, "taken"));
        let line = log.lines().find(|line| line.contains("transaction ended by the broker")).unwrap();
        assert!(line.contains(&aborted.trace), "{line}");
    }
}

fn ends_within_its_bound(server: &mut Server) {
    let told = now();
    let status = server.terminate();
    assert_eq!(status.code(), Some(0), "{}", server.log());
    assert!(told.elapsed() < BOUND, "{:?}: {}", told.elapsed(), server.log());
}

#[test]
fn a_collector_that_hangs_holds_up_nobody() {
    let collector = Collector::listen(Manners::Hangs);
    let endpoint = format!("tracing.endpoint={}", collector.endpoint());
    let patient = [("OTEL_EXPORTER_OTLP_TIMEOUT", "60000"), ("OTEL_BSP_SCHEDULE_DELAY", "10")];
    let mut server = serve_among(&[&endpoint], &patient);
    two_transactions(&mut server.connect());
    ends_within_its_bound(&mut server);
    assert!(server.log().contains("traces not delivered before the end"), "{}", server.log());
    server.start_again();
    assert!(server.started_clean(), "{}", server.log());
}

fn dropped(server: &Server) -> Option<u64> {
    let mut stream = TcpStream::connect(server.admin()).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix("oncelog_trace_spans_dropped_total "))?;
    value.parse().ok()
}

#[test]
fn a_collector_that_is_away_is_missed_once() {
    let away = format!("http://127.0.0.1:{}", free_port());
    let mut server = serve_among(&[], &[(ENDPOINT, &away), ("OTEL_BSP_SCHEDULE_DELAY", "10")]);
    let mut client = server.connect();
    two_transactions(&mut client);
    let before = eventually("spans that are lost", || dropped(&server).filter(|count| *count > 0));
    eventually("more of them", || {
        client.api_versions();
        dropped(&server).filter(|count| *count > before)
    });
    ends_within_its_bound(&mut server);
    let lines = server.log().lines().filter(|line| line.contains("cannot be reached")).count();
    assert_eq!(lines, 1, "{}", server.log());
}

#[test]
fn nothing_is_sent_that_is_not_sampled_or_not_asked_for() {
    let collector = Collector::listen(Manners::Takes);
    let endpoint = format!("tracing.endpoint={}", collector.endpoint());
    let mut none = serve(&[&endpoint, "tracing.sample_ratio=0"]);
    two_transactions(&mut none.connect());
    assert_eq!(none.terminate().code(), Some(0));
    let disabled = [(ENDPOINT, &*collector.endpoint()), ("OTEL_SDK_DISABLED", "true")];
    let mut off = serve_among(&[], &disabled);
    two_transactions(&mut off.connect());
    assert_eq!(off.terminate().code(), Some(0));
    assert!(collector.spans().0.is_empty());
    assert!(!off.log().contains("traces are sent"), "{}", off.log());
}

//! A collector of traces, as far as a broker sees one: takes what is posted, or behaves badly.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span as Sent;
use prost::Message;

/// What it does with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manners {
    /// Takes everything.
    Takes,
    /// Reads and never answers.
    Hangs,
}

/// One that listens. Ends with the test.
pub(crate) struct Collector {
    address: SocketAddr,
    posted: Receiver<ExportTraceServiceRequest>,
}

/// A span, with what a test asks of it.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) name: String,
    pub(crate) kind: i32,
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) times: (u64, u64),
    pub(crate) attributes: BTreeMap<String, String>,
    /// Names of its events, with the first of their attributes' values.
    pub(crate) events: Vec<(String, Vec<String>)>,
    /// Traces and spans that it points to.
    pub(crate) links: Vec<(String, String)>,
    pub(crate) failed: bool,
}

impl Collector {
    pub(crate) fn listen(manners: Manners) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, (sender, posted)) = (listener.local_addr().unwrap(), channel());
        thread::spawn(move || {
            let mut held = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let Some(posted) = take(&mut stream) else { continue };
                match manners {
                    Manners::Takes => {
                        // The test is over, or reads it later.
                        drop(sender.send(posted));
                        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap_or_default();
                    }
                    Manners::Hangs => held.push(stream),
                }
            }
        });
        Self { address, posted }
    }

    /// Where it is, as it is set.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything posted so far; and what each sender said of itself.
    pub(crate) fn spans(&self) -> (Vec<Span>, Vec<BTreeMap<String, String>>) {
        let (mut spans, mut resources) = (Vec::new(), Vec::new());
        for resource in self.posted.try_iter().flat_map(|posted| posted.resource_spans) {
            resources.push(read_all(&resource.resource.unwrap_or_default().attributes));
            spans.extend(resource.scope_spans.into_iter().flat_map(|scope| scope.spans).map(Span::of));
        }
        (spans, resources)
    }
}

impl Span {
    fn of(sent: Sent) -> Self {
        let event = |event: &opentelemetry_proto::tonic::trace::v1::span::Event| {
            (event.name.clone(), read_all(&event.attributes).into_values().collect())
        };
        Self {
            kind: sent.kind,
            trace: hex(&sent.trace_id),
            id: hex(&sent.span_id),
            parent: hex(&sent.parent_span_id),
            times: (sent.start_time_unix_nano, sent.end_time_unix_nano),
            attributes: read_all(&sent.attributes),
            events: sent.events.iter().map(event).collect(),
            links: sent.links.iter().map(|link| (hex(&link.trace_id), hex(&link.span_id))).collect(),
            failed: sent.status.is_some_and(|status| status.code == 2),
            name: sent.name,
        }
    }

    /// An attribute's value as text; empty where there is none.
    pub(crate) fn says(&self, key: &str) -> &str {
        self.attributes.get(key).map_or("", String::as_str)
    }

    pub(crate) fn points_to(&self, other: &Self) -> bool {
        self.links.contains(&(other.trace.clone(), other.id.clone()))
    }
}

/// One request: that it is well formed is checked by the way.
fn take(stream: &mut TcpStream) -> Option<ExportTraceServiceRequest> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        lines.push(line.trim_end().to_ascii_lowercase());
    }
    assert_eq!(lines[0], "post /v1/traces http/1.1");
    assert!(lines.iter().any(|line| line == "content-type: application/x-protobuf"), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("host: 127.0.0.1:")), "{lines:?}");
    let length = lines.iter().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).ok()?;
    Some(ExportTraceServiceRequest::decode(body.as_slice()).unwrap())
}

fn read_all(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |value: &Option<AnyValue>| match value.as_ref().and_then(|value| value.value.clone()) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(truth)) => truth.to_string(),
        Some(other) => format!("{other:?}"),
        None => String::new(),
    };
    attributes.iter().map(|attribute| (attribute.key.clone(), text(&attribute.value))).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

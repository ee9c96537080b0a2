//! From what was kept of a transaction to its spans.

use std::time::SystemTime;

use opentelemetry::trace::{Event, Span as _, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{SdkTracer, Span};

use super::{Decided, Marker, Track};
use crate::engine::txn::end::Cause;
use crate::engine::{Outcome, PartId, Producer, TopicName, TransactionalId};
use crate::metrics::FencingReason;
use crate::runtime::post::MarkResult;
use crate::runtime::tracks::Place;

/// Whose transaction it is.
pub(super) fn about(id: &TransactionalId, producer: Producer) -> [KeyValue; 4] {
    [
        KeyValue::new("messaging.system", "kafka"),
        KeyValue::new("kafka.transactional_id", id.to_string()),
        KeyValue::new("kafka.producer_id", producer.id),
        KeyValue::new("kafka.producer_epoch", i64::from(producer.epoch)),
    ]
}

/// How it ends, and why.
pub(super) fn verdict(outcome: Outcome, cause: Cause) -> [KeyValue; 2] {
    let outcome = match outcome {
        Outcome::Commit => "commit",
        Outcome::Abort => "abort",
    };
    [KeyValue::new("oncelog.transaction.outcome", outcome), KeyValue::new("oncelog.transaction.cause", word(cause))]
}

const fn word(cause: Cause) -> &'static str {
    match cause {
        Cause::Client => "client",
        Cause::Timeout => "timeout",
        Cause::NewOwner => "new_owner",
        Cause::Admin => "admin",
    }
}

/// Who was fenced by whom.
pub(super) fn fenced(old: Producer, new: Producer, reason: FencingReason) -> Vec<KeyValue> {
    vec![
        KeyValue::new("oncelog.fencing.reason", format!("{reason:?}")),
        KeyValue::new("kafka.producer_id", old.id),
        KeyValue::new("kafka.producer_epoch", i64::from(old.epoch)),
        KeyValue::new("oncelog.fencing.new_producer_id", new.id),
        KeyValue::new("oncelog.fencing.new_producer_epoch", i64::from(new.epoch)),
    ]
}

/// Sends the spans of a transaction that is over, or that nothing more will be heard of.
pub(super) fn send(tracer: &SdkTracer, track: Track, over: SystemTime) {
    let Track { mut span, asked, earlier, decided, requests, producers, sealed, mut events, .. } = track;
    let within = Context::new().with_remote_span_context(span.span_context().clone());
    // Without a decision there are no phases, and everything happened to the transaction as a whole.
    let later = if decided.is_some() { events.split_off(earlier.min(events.len())) } else { Vec::new() };
    let (whole, in_prepare): (Vec<Event>, Vec<Event>) = later.into_iter().partition(|event| event.name == "fenced");
    events.into_iter().chain(whole).for_each(|event| add(&mut span, event));
    if let Some(decided) = decided {
        span.set_attributes(verdict(decided.outcome, decided.cause));
        if decided.cause != Cause::Client {
            span.set_status(Status::error(format!("aborted by the broker: {}", word(decided.cause))));
        }
        let partitions = i64::try_from(decided.partitions).unwrap_or(i64::MAX);
        span.set_attribute(KeyValue::new("kafka.partitions", partitions));
        let seals = sealed.into_iter().filter_map(|(part, at)| decided.sealed(part, at));
        let events = in_prepare.into_iter().chain(seals).collect();
        phases(tracer, &within, (asked.unwrap_or(decided.at), over), (decided, events));
    }
    for context in requests.into_iter().chain(producers) {
        span.add_link(context, Vec::new());
    }
    span.end_with_timestamp(over);
}

impl Decided {
    fn sealed(&self, part: PartId, at: SystemTime) -> Option<Event> {
        let Place { topic, index, .. } = &self.markers.get(&part)?.place;
        Some(Event::new("sealed, and all before it on disk", at, named(topic, *index), 0))
    }
}

fn phases(
    tracer: &SdkTracer,
    within: &Context,
    (asked, over): (SystemTime, SystemTime),
    (decided, mut events): (Decided, Vec<Event>),
) {
    let on_disk = decided.on_disk.unwrap_or(decided.at);
    events.push(Event::new("decision stored", decided.at, Vec::new(), 0));
    let mut prepare = begin(tracer, within, "prepare", asked);
    events.into_iter().for_each(|event| add(&mut prepare, event));
    prepare.end_with_timestamp(on_disk);
    if decided.debt.is_none() {
        return;
    }
    let last = |marker: &Marker| marker.appended.or(marker.ended.map(|(at, _)| at));
    let written = decided.markers.values().filter_map(last).max().unwrap_or(over);
    let mut markers = begin(tracer, within, "markers", on_disk);
    let in_markers = within.with_remote_span_context(markers.span_context().clone());
    for marker in decided.markers.values() {
        send_marker(tracer, &in_markers, marker, (on_disk, over));
    }
    markers.end_with_timestamp(written);
    let mut complete = begin(tracer, within, "complete", written);
    for Marker { place, ended, .. } in decided.markers.into_values() {
        if let Some((at, result)) = ended {
            add(&mut complete, Event::new(how(result), at, named(&place.topic, place.index), 0));
        }
    }
    complete.end_with_timestamp(over);
}

/// From the order for a marker to its bytes in the log's file; that they are on disk is told with the last phase.
fn send_marker(tracer: &SdkTracer, within: &Context, marker: &Marker, (on_disk, over): (SystemTime, SystemTime)) {
    let mut span = begin(tracer, within, "marker", marker.ordered.unwrap_or(on_disk));
    span.set_attributes(named(&marker.place.topic, marker.place.index));
    marker.failures.iter().cloned().for_each(|event| add(&mut span, event));
    match marker.ended {
        Some((_, MarkResult::Synced | MarkResult::Appended)) => {}
        Some((_, result)) => span.set_status(Status::error(how(result))),
        None => span.set_status(Status::error("not heard of again")),
    }
    span.end_with_timestamp(marker.appended.or(marker.ended.map(|(at, _)| at)).unwrap_or(over));
}

const fn how(result: MarkResult) -> &'static str {
    match result {
        MarkResult::Synced => "marker on disk",
        MarkResult::Appended => "marker written",
        MarkResult::Gone => "partition deleted",
        MarkResult::Parked => "partition damaged",
        MarkResult::Failed(_) => "marker not written",
    }
}

fn named(topic: &TopicName, index: i32) -> Vec<KeyValue> {
    vec![
        KeyValue::new("messaging.destination.name", topic.to_string()),
        KeyValue::new("messaging.destination.partition.id", index.to_string()),
    ]
}

fn begin(tracer: &SdkTracer, within: &Context, name: &'static str, at: SystemTime) -> Span {
    tracer.build_with_context(tracer.span_builder(name).with_start_time(at), within)
}

fn add(span: &mut Span, Event { name, timestamp, attributes, .. }: Event) {
    span.add_event_with_timestamp(name, timestamp, attributes);
}

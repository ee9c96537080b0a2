use std::sync::mpsc::{Receiver, Sender, channel};

use opentelemetry::trace::{SpanId, Status, TracerProvider};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider, SpanData, SpanProcessor};

use super::*;
use crate::engine::{Refusal, TopicName};
use crate::metrics::FencingReason;

const OWNER: Producer = Producer { id: 7, epoch: 1 };
const DEBT: Option<u64> = Some(90);

#[derive(Debug)]
struct Kept(Sender<SpanData>);

impl SpanProcessor for Kept {
    fn on_start(&self, _: &mut Span, _: &opentelemetry::Context) {}

    fn on_end(&self, span: SpanData) {
        // Those that end with the test itself interest nobody.
        drop(self.0.send(span));
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

fn transactions(sampler: Sampler) -> (Transactions, Arc<Counts>, Receiver<SpanData>) {
    let ((sender, spans), counts) = (channel(), Arc::new(Counts::default()));
    let provider = SdkTracerProvider::builder().with_span_processor(Kept(sender)).with_sampler(sampler).build();
    (Transactions::new(provider.tracer("test"), Arc::clone(&counts)), counts, spans)
}

fn begun(id: &TransactionalId, number: u64) -> Moment<'_> {
    Moment::Begun { number, id, producer: OWNER, found_since_wall_ms: None }
}

const fn asked(number: u64, cause: Cause) -> Moment<'static> {
    Moment::Asked { number, outcome: Outcome::Abort, cause }
}

const fn decided(number: u64, debt: Option<u64>, cause: Cause, places: &[Place]) -> Moment<'_> {
    Moment::Decided { number, debt, outcome: Outcome::Abort, cause, places, partitions: places.len() }
}

fn places(count: i32) -> Vec<Place> {
    let place = |index| Place { part: part(index), topic: TopicName::from("t"), index };
    (0..count).map(place).collect()
}

fn part(index: i32) -> PartId {
    PartId(i64::from(index))
}

fn heard(index: i32, result: MarkResult) -> Moment<'static> {
    Moment::Marked { debt: 90, part: part(index), result }
}

/// Names of spans in the order of their ends, each with the names of its events.
fn shown(spans: &Receiver<SpanData>) -> Vec<String> {
    let line = |span: SpanData| {
        let events: Vec<_> = span.events.iter().map(|event| event.name.to_string()).collect();
        let failed = if matches!(span.status, Status::Error { .. }) { "!" } else { "" };
        format!("{}{failed} {}", span.name, events.join(", ")).trim_end().to_owned()
    };
    spans.try_iter().map(line).collect()
}

/// After these moments these spans were sent, and nothing is kept.
fn check(what: &str, moments: &[Moment<'_>], wanted: &[&str]) {
    let (transactions, _, spans) = transactions(Sampler::AlwaysOn);
    moments.iter().for_each(|moment| transactions.note(moment));
    assert_eq!(shown(&spans), wanted, "{what}");
    let left = transactions.followed.lock();
    assert!(left.by_number.is_empty() && left.by_id.is_empty() && left.by_debt.is_empty(), "{what}");
}

#[test]
fn what_becomes_of_moments() {
    let id = TransactionalId::from("a");
    let two = places(2);
    let order = |index| Moment::Ordered { debt: 90, part: part(index) };
    let append = |index| Moment::Appended { debt: 90, part: part(index) };
    let over = Moment::Over { debt: 90 };
    let full = MarkResult::Failed(Refusal::KafkaStorageError);
    let fenced = Moment::Fenced { id: &id, old: OWNER, new: OWNER, reason: FencingReason::TimeoutBump };
    let table: &[(&str, Vec<Moment<'_>>, &[&str])] = &[
        (
            "offsets alone owe no marker",
            vec![begun(&id, 1), asked(1, Cause::Client), decided(1, None, Cause::Client, &[])],
            &["prepare asked, decision stored", "transaction"],
        ),
        (
            "a timeout, a full disk, a deleted partition",
            vec![
                begun(&id, 1),
                asked(1, Cause::Timeout),
                Moment::Sealed { number: 1, part: part(0) },
                fenced,
                decided(1, DEBT, Cause::Timeout, &two),
                order(0),
                heard(0, full),
                order(0),
                append(0),
                heard(1, MarkResult::Gone),
                heard(0, MarkResult::Synced),
                over,
            ],
            &[
                "prepare asked, sealed, and all before it on disk, decision stored",
                "marker not written, to be tried again",
                "marker!",
                "markers",
                "complete marker on disk, partition deleted",
                "transaction! fenced",
            ],
        ),
        (
            "a decision that found no room is asked for again",
            vec![
                begun(&id, 1),
                asked(1, Cause::Client),
                Moment::Undone { number: 1 },
                asked(1, Cause::Client),
                decided(1, None, Cause::Client, &[]),
            ],
            &["prepare asked, decision stored", "transaction asked, undone"],
        ),
        (
            "what was not begun here is not followed",
            vec![asked(1, Cause::Client), decided(1, DEBT, Cause::Client, &two), order(0), over],
            &[],
        ),
    ];
    table.iter().for_each(|(what, moments, wanted)| check(what, moments, wanted));
}

#[test]
fn a_stop_sends_what_is_open() {
    let (transactions, _, spans) = transactions(Sampler::AlwaysOn);
    let (open, decided_one) = (TransactionalId::from("open"), TransactionalId::from("decided"));
    transactions.note(&begun(&open, 1));
    transactions.note(&begun(&decided_one, 2));
    let one = places(1);
    transactions.note(&asked(2, Cause::Client));
    transactions.note(&decided(2, DEBT, Cause::Client, &one));
    transactions.stop();
    let spans: Vec<SpanData> = spans.try_iter().collect();
    let roots: Vec<_> = spans.iter().filter(|span| span.parent_span_id == SpanId::INVALID).collect();
    assert_eq!((roots.len(), spans.len()), (2, 6), "{spans:?}");
    assert!(spans.iter().any(|span| span.events.iter().any(|event| event.name == "broker stops")));
    assert_eq!(transactions.context(&open), None);
}

#[test]
fn memory_is_bounded() {
    let (transactions, counts, spans) = transactions(Sampler::AlwaysOn);
    let id = TransactionalId::from("a");
    for number in 0..u64::try_from(FOLLOWED).unwrap() + 3 {
        transactions.note(&begun(&id, number));
    }
    assert_eq!((transactions.followed.lock().by_number.len(), counts.take_dropped()), (FOLLOWED, 3));
    let context = transactions.context(&id).unwrap();
    for _ in 0..LINKS + 5 {
        let (request, other) = (context.clone(), context.clone());
        transactions.produced(&id, Some(&request), vec![other]);
    }
    let last = u64::try_from(FOLLOWED).unwrap() - 1;
    let many = places(i32::try_from(MARKERS).unwrap() + 9);
    transactions.note(&decided(last, DEBT, Cause::Client, &many));
    assert_eq!(shown(&spans).len(), 0);
    transactions.note(&Moment::Over { debt: 90 });
    let spans: Vec<SpanData> = spans.try_iter().collect();
    assert_eq!(spans.len(), MARKERS + 4);
    assert_eq!(spans.last().unwrap().links.len(), LINKS + 1, "the same producer once");
}

#[test]
fn what_is_not_sampled_costs_nothing() {
    let (transactions, counts, spans) = transactions(Sampler::AlwaysOff);
    let id = TransactionalId::from("a");
    transactions.note(&begun(&id, 1));
    assert!(transactions.followed.lock().by_number.is_empty());
    transactions.note(&asked(1, Cause::Client));
    transactions.note(&decided(1, None, Cause::Client, &[]));
    assert_eq!((shown(&spans).len(), counts.take_dropped()), (0, 0));
}

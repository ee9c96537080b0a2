//! One trace for each transaction: the transaction itself, the phases of its end, and a marker for each partition.
//!
//! While a transaction goes on only moments are kept, under a lock that is held for no longer than it takes to look one
//! up; its spans are made when it is over, outside the lock, with the times that were kept.

mod spans;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use opentelemetry::KeyValue;
use opentelemetry::trace::{Event, Span as _, SpanContext, Tracer};
use opentelemetry_sdk::trace::{SdkTracer, Span};
use parking_lot::Mutex;

use super::export::Counts;
use crate::engine::txn::end::Cause;
use crate::engine::{Outcome, PartId, Producer, TransactionalId};
use crate::runtime::post::MarkResult;
use crate::runtime::tracks::{Moment, Place};

/// Transactions that are followed at one time.
const FOLLOWED: usize = 4_096;
/// Produce requests, and contexts of producers, that one transaction points to: the latest.
const LINKS: usize = 32;
/// Events of one transaction that are kept.
const EVENTS: usize = 64;
/// Failed tries of one marker that are kept: a full disk gives one a second.
const FAILURES: usize = 4;
/// Partitions of one transaction whose markers get spans.
const MARKERS: usize = 256;

/// The transactions that are followed.
pub(super) struct Transactions {
    tracer: SdkTracer,
    counts: Arc<Counts>,
    followed: Mutex<Followed>,
}

#[derive(Default)]
struct Followed {
    by_number: BTreeMap<u64, Track>,
    /// The latest of each id.
    by_id: BTreeMap<TransactionalId, u64>,
    by_debt: BTreeMap<u64, u64>,
}

/// What is known of one transaction so far.
struct Track {
    id: TransactionalId,
    span: Span,
    /// When its end was first wanted; anew if nothing came of it.
    asked: Option<SystemTime>,
    undone: bool,
    /// How many events came before that.
    earlier: usize,
    decided: Option<Decided>,
    /// The oldest go first.
    requests: VecDeque<SpanContext>,
    producers: VecDeque<SpanContext>,
    /// Where all of it is on disk.
    sealed: Vec<(PartId, SystemTime)>,
    /// What else happened.
    events: Vec<Event>,
}

struct Decided {
    at: SystemTime,
    debt: Option<u64>,
    outcome: Outcome,
    cause: Cause,
    /// The first marker was asked for, so the decision was on disk.
    on_disk: Option<SystemTime>,
    markers: BTreeMap<PartId, Marker>,
    /// Partitions in all, those without a marker's span included.
    partitions: usize,
}

struct Marker {
    place: Place,
    ordered: Option<SystemTime>,
    appended: Option<SystemTime>,
    ended: Option<(SystemTime, MarkResult)>,
    failures: Vec<Event>,
}

/// Now, as spans are timed everywhere.
#[expect(clippy::disallowed_methods, reason = "nothing is decided by it, and the clock's milliseconds are too coarse")]
fn now() -> SystemTime {
    SystemTime::now()
}

impl Transactions {
    pub(super) fn new(tracer: SdkTracer, counts: Arc<Counts>) -> Self {
        Self { tracer, counts, followed: Mutex::default() }
    }

    /// The id's latest transaction, if it is followed.
    pub(super) fn context(&self, id: &TransactionalId) -> Option<SpanContext> {
        let followed = self.followed.lock();
        let track = followed.by_number.get(followed.by_id.get(id)?)?;
        Some(track.span.span_context().clone())
    }

    /// A Produce of the id's transaction, and what its records say of where they come from.
    pub(super) fn produced(&self, id: &TransactionalId, request: Option<&SpanContext>, producers: Vec<SpanContext>) {
        let mut followed = self.followed.lock();
        let Some(number) = followed.by_id.get(id).copied() else { return };
        let Some(track) = followed.by_number.get_mut(&number) else { return };
        if let Some(request) = request {
            keep(&mut track.requests, request.clone());
        }
        for producer in producers {
            if !track.producers.contains(&producer) {
                keep(&mut track.producers, producer);
            }
        }
    }

    pub(super) fn note(&self, moment: &Moment<'_>) {
        let at = now();
        match *moment {
            Moment::Begun { number, id, producer, found_since_wall_ms } => {
                self.begin((number, id), producer, found_since_wall_ms);
            }
            Moment::Asked { number, outcome, cause } => self.change(number, |track| {
                if track.asked.is_none() || track.undone {
                    (track.asked, track.undone, track.earlier) = (Some(at), false, track.events.len());
                }
                track.event(Event::new("asked", at, spans::verdict(outcome, cause).into(), 0));
            }),
            Moment::Sealed { number, part } => self.change(number, |track| {
                if track.sealed.len() < MARKERS {
                    track.sealed.push((part, at));
                }
            }),
            Moment::Undone { number } => self.change(number, |track| {
                track.undone = true;
                track.sealed.clear();
                track.event(Event::new("undone", at, Vec::new(), 0));
            }),
            Moment::Decided { number, debt, outcome, cause, places, partitions } => {
                let decided = Decided::new((at, debt), (outcome, cause), (places, partitions));
                self.decide(number, decided);
            }
            Moment::Ordered { debt, part } => self.mark(debt, part, |decided, part| {
                decided.on_disk.get_or_insert(at);
                decided.change(part, |marker| marker.ordered = marker.ordered.or(Some(at)));
            }),
            Moment::Appended { debt, part } => self.mark(debt, part, |decided, part| {
                decided.change(part, |marker| marker.appended = marker.appended.or(Some(at)));
            }),
            Moment::Marked { debt, part, result } => {
                self.mark(debt, part, |decided, part| decided.change(part, |marker| marker.heard(at, result)));
            }
            Moment::Over { debt } => {
                let number = self.followed.lock().by_debt.get(&debt).copied();
                number.into_iter().for_each(|number| self.end(number, at));
            }
            Moment::Fenced { id, old, new, reason } => {
                let number = self.followed.lock().by_id.get(id).copied();
                let fenced = || Event::new("fenced", at, spans::fenced(old, new, reason), 0);
                number.into_iter().for_each(|number| self.change(number, |track| track.event(fenced())));
            }
        }
    }

    /// Nothing more will be told of them: those that are open are sent as they stand.
    pub(super) fn stop(&self) {
        let Followed { by_number, .. } = std::mem::take(&mut *self.followed.lock());
        let at = now();
        for (_, mut track) in by_number {
            track.event(Event::new("broker stops", at, Vec::new(), 0));
            spans::send(&self.tracer, track, at);
        }
    }

    /// Whether a transaction is followed is decided when it begins, and for all of it.
    fn begin(&self, (number, id): (u64, &TransactionalId), producer: Producer, found_since_wall_ms: Option<i64>) {
        let started = found_since_wall_ms
            .and_then(|ms| SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(u64::try_from(ms).ok()?)));
        if self.followed.lock().by_number.len() >= FOLLOWED {
            self.counts.drop_some(1);
            return;
        }
        let mut builder = self.tracer.span_builder("transaction").with_attributes(spans::about(id, producer));
        builder.start_time = started;
        let mut span = self.tracer.build_with_context(builder, &opentelemetry::Context::new());
        if !span.is_recording() {
            return;
        }
        if started.is_some() {
            span.set_attribute(KeyValue::new("oncelog.transaction.found_at_start", true));
        }
        let mut followed = self.followed.lock();
        followed.by_number.insert(number, Track::new(id.clone(), span));
        followed.by_id.insert(id.clone(), number);
    }

    fn decide(&self, number: u64, decided: Decided) {
        let (at, debt) = (decided.at, decided.debt);
        let mut followed = self.followed.lock();
        let Some(track) = followed.by_number.get_mut(&number) else { return };
        track.decided = Some(decided);
        if let Some(debt) = debt {
            followed.by_debt.insert(debt, number);
            return;
        }
        drop(followed);
        self.end(number, at);
    }

    fn end(&self, number: u64, at: SystemTime) {
        let track = self.followed.lock().take(number);
        if let Some(track) = track {
            spans::send(&self.tracer, track, at);
        }
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut Track)) {
        if let Some(track) = self.followed.lock().by_number.get_mut(&number) {
            change(track);
        }
    }

    pub(super) fn follows(&self, number: u64) -> bool {
        self.followed.lock().by_number.contains_key(&number)
    }

    fn mark(&self, debt: u64, part: PartId, change: impl FnOnce(&mut Decided, PartId)) {
        let mut followed = self.followed.lock();
        let Some(number) = followed.by_debt.get(&debt).copied() else { return };
        if let Some(decided) = followed.by_number.get_mut(&number).and_then(|track| track.decided.as_mut()) {
            change(decided, part);
        }
    }
}

impl Followed {
    fn take(&mut self, number: u64) -> Option<Track> {
        let track = self.by_number.remove(&number)?;
        if self.by_id.get(&track.id) == Some(&number) {
            self.by_id.remove(&track.id);
        }
        if let Some(debt) = track.decided.as_ref().and_then(|decided| decided.debt) {
            self.by_debt.remove(&debt);
        }
        Some(track)
    }
}

impl Track {
    fn new(id: TransactionalId, span: Span) -> Self {
        Self {
            id,
            span,
            asked: None,
            undone: false,
            earlier: 0,
            decided: None,
            requests: VecDeque::new(),
            producers: VecDeque::new(),
            sealed: Vec::new(),
            events: Vec::new(),
        }
    }

    fn event(&mut self, event: Event) {
        if self.events.len() < EVENTS {
            self.events.push(event);
        }
    }
}

impl Decided {
    fn new(
        (at, debt): (SystemTime, Option<u64>),
        (outcome, cause): (Outcome, Cause),
        (places, partitions): (&[Place], usize),
    ) -> Self {
        let shown = places.iter().take(MARKERS);
        let markers = shown.map(|place| (place.part, Marker::at(place.clone()))).collect();
        Self { at, debt, outcome, cause, on_disk: None, markers, partitions }
    }

    fn change(&mut self, part: PartId, change: impl FnOnce(&mut Marker)) {
        if let Some(marker) = self.markers.get_mut(&part) {
            change(marker);
        }
    }
}

impl Marker {
    fn at(place: Place) -> Self {
        Self { place, ordered: None, appended: None, ended: None, failures: Vec::new() }
    }

    fn heard(&mut self, at: SystemTime, result: MarkResult) {
        match result {
            MarkResult::Appended => self.appended = self.appended.or(Some(at)),
            MarkResult::Synced | MarkResult::Gone | MarkResult::Parked => self.ended = Some((at, result)),
            MarkResult::Failed(refusal) => {
                // Not in the file after all; the next try is another order.
                self.appended = None;
                if self.failures.len() < FAILURES {
                    let why = KeyValue::new("error.type", crate::wire::codes::name(refusal));
                    self.failures.push(Event::new("not written, to be tried again", at, vec![why], 0));
                }
            }
        }
    }
}

fn keep(kept: &mut VecDeque<SpanContext>, context: SpanContext) {
    if kept.len() >= LINKS {
        kept.pop_front();
    }
    kept.push_back(context);
}

#[cfg(test)]
mod tests;

//! Those who read: a consumer of each view that runs all the time, and one who asks where everything stands.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kafka_protocol::messages::ListTransactionsRequest;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::{Message, Offset, TopicPartitionList};

use crate::clients::{GROUP, INPUTS, Line, OUTPUTS, Run};
use crate::dice::Dice;
use crate::history::{Part, Topic, View, What};
use crate::librdkafka::is_passing;
use crate::raw::admin::{offset_fetch_request, offset_fetched};
use crate::raw::data::{Fetched, Isolation, LATEST, fetch_request, list_offsets_request};

/// Every partition of the run.
pub(crate) fn parts() -> impl Iterator<Item = Part> {
    let inputs = (0..INPUTS).map(|number| Part { topic: Topic::In, number });
    inputs.chain((0..OUTPUTS).map(|number| Part { topic: Topic::Out, number }))
}

fn isolation(view: View) -> Isolation {
    match view {
        View::Committed => Isolation::ReadCommitted,
        View::Uncommitted => Isolation::ReadUncommitted,
    }
}

/// A librdkafka consumer of all partitions, from the first record to the end of the run.
pub(crate) fn consume(run: &Run, view: View, over: &AtomicBool) {
    let level = match view {
        View::Committed => "read_committed",
        View::Uncommitted => "read_uncommitted",
    };
    let consumer: BaseConsumer = crate::librdkafka::consumer(&run.bootstrap(), "nobody", level);
    let mut from_start = TopicPartitionList::new();
    for part in parts() {
        from_start.add_partition_offset(part.topic.name(), part.number, Offset::Offset(0)).unwrap();
    }
    consumer.assign(&from_start).unwrap();
    while !over.load(Ordering::Acquire) {
        match consumer.poll(Duration::from_millis(50)) {
            Some(Ok(message)) => {
                let part = Part { topic: Topic::of(message.topic()), number: message.partition() };
                let payload = String::from_utf8_lossy(message.payload().unwrap_or_default());
                run.history.lock().consumed(view, part, (message.offset(), &payload));
            }
            Some(Err(KafkaError::PartitionEOF(_))) | None => {}
            Some(Err(error)) if is_passing(&error) => {}
            Some(Err(error)) => {
                run.history.lock().wrong(What::Missed, None, format!("the {view:?} consumer: {error}"));
            }
        }
    }
}

/// Asks all the time where partitions end and the group stands, and reads here and there what others have read before.
pub(crate) fn poll(run: &Run, over: &AtomicBool) {
    let mut asker = Asker::new(run);
    let mut dice = Dice::new(run.seed, 1 << 41);
    while !over.load(Ordering::Acquire) {
        for part in parts() {
            let end = asker.end(part, View::Committed);
            asker.end(part, View::Uncommitted);
            if let (Some(end @ 1..), true) = (end, dice.permille(100)) {
                let from = i64::from(dice.roll(u32::try_from(end).unwrap()));
                let view = if dice.permille(500) { View::Committed } else { View::Uncommitted };
                asker.read(view, part, (from, end.min(from + 200)));
            }
        }
        for number in 0..INPUTS {
            asker.group(GROUP, number);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Asks the broker itself, past the network. Whatever is not answered is `None`.
pub(crate) struct Asker<'a> {
    run: &'a Run,
    line: Line<'a>,
}

impl<'a> Asker<'a> {
    pub(crate) fn new(run: &'a Run) -> Self {
        Self { run, line: Line::new(run, run.broker, "asker") }
    }

    /// Where a partition ends in this view.
    pub(crate) fn end(&mut self, part: Part, view: View) -> Option<i64> {
        let known = self.run.history.lock().known_end(view, part);
        let request = list_offsets_request(part.topic.name(), part.number, LATEST, isolation(view));
        let answer = self.line.ask(8, &request)?;
        let result = &answer.topics[0].partitions[0];
        (result.error_code == 0).then(|| {
            self.run.history.lock().ends_at(view, part, (known, result.offset));
            result.offset
        })
    }

    /// Where a group stands in a partition of the topic that is read; -1 for nowhere.
    pub(crate) fn group(&mut self, group: &str, number: i32) -> Option<i64> {
        let known = self.run.history.lock().known_stand(group, number);
        let request = offset_fetch_request(group, (Topic::In.name(), number), true);
        let (code, offset) = offset_fetched(&self.line.ask(8, &request)?);
        (code == 0).then(|| {
            self.run.history.lock().group_stands((group, number), (known, offset));
            offset
        })
    }

    /// Reads from one offset up to another, which must be below the view's end, and tells the history; false without
    /// an answer.
    pub(crate) fn read(&mut self, view: View, part: Part, (from, to): (i64, i64)) -> bool {
        let (mut records, mut at) = (Vec::new(), from);
        while at < to {
            let known = [View::Committed, View::Uncommitted].map(|view| self.run.history.lock().known_end(view, part));
            let request = fetch_request(part.topic.name(), part.number, at, isolation(view));
            let Some(answer) = self.line.ask(12, &request) else { return false };
            let fetched = Fetched::of(&answer);
            if fetched.code != 0 {
                return false;
            }
            let limit = if view == View::Committed { fetched.last_stable } else { fetched.high_watermark };
            let mut history = self.run.history.lock();
            history.ends_at(View::Committed, part, (known[0], fetched.last_stable));
            history.ends_at(View::Uncommitted, part, (known[1], fetched.high_watermark));
            let Some(last) = fetched.batches().last().map(|batch| batch.last_offset) else {
                history.wrong(What::LostWrite, None, format!("{part} gives nothing at {at}, below its end {to}"));
                return true;
            };
            if last >= limit {
                history.wrong(What::AbortedRead, None, format!("{part} gives {last} to {view:?}, its end is {limit}"));
            }
            records.extend(fetched.shown(isolation(view)).into_iter().filter(|(offset, _)| (at..to).contains(offset)));
            at = last + 1;
        }
        self.run.history.lock().read(view, part, (from, to), &records);
        true
    }

    /// Transactional ids that are not at rest.
    pub(crate) fn open(&mut self) -> Option<Vec<String>> {
        let answer = self.line.ask(0, &ListTransactionsRequest::default())?;
        let at_rest = ["Empty", "CompleteCommit", "CompleteAbort"];
        let open = answer.transaction_states.iter().filter(|txn| !at_rest.contains(&txn.transaction_state.as_str()));
        Some(open.map(|txn| format!("{} is {}", txn.transactional_id.as_str(), txn.transaction_state)).collect())
    }
}

//! Feeds the processors, as a plain idempotent producer.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::producer::{InFlight, Producer};
use super::{Client, INPUTS, Run};
use crate::dice::Dice;
use crate::history::{Kind, Part, Topic};

/// Records of one attempt.
const RECORDS: usize = 10;
/// Longer than the producer itself has patience.
const LONGEST: Duration = Duration::from_secs(15);

pub(super) struct Feeder<'a> {
    run: &'a Run,
    name: String,
    dice: Dice,
    producer: Option<(InFlight, Producer)>,
}

impl<'a> Feeder<'a> {
    pub(super) fn new(run: &'a Run, name: &str, dice: Dice) -> Self {
        Self { run, name: name.to_owned(), dice, producer: None }
    }
}

impl Client for Feeder<'_> {
    fn attempt(&mut self) {
        let in_flight = if self.run.refuses.load(Ordering::Acquire) { InFlight::One } else { InFlight::Five };
        // Between rounds nothing is under way.
        self.producer.take_if(|(had, _)| *had != in_flight);
        let make = || (in_flight, Producer::plain(self.run, in_flight));
        let (_, producer) = self.producer.get_or_insert_with(make);
        let attempt = self.run.history.lock().begin(&self.name, Kind::Plain);
        for _ in 0..RECORDS {
            let part = Part { topic: Topic::In, number: self.dice.partition(INPUTS) };
            if producer.send(self.run, (attempt, part, None), &mut self.dice).is_err() {
                break;
            }
        }
        // What is under way is bounded, and several batches of it are.
        if producer.client_is_behind() {
            producer.flush(self.run, Duration::from_millis(200));
        }
        std::thread::sleep(self.dice.ms(5, 25));
        producer.report(self.run);
        if producer.is_fatal() {
            producer.flush(self.run, LONGEST);
            self.producer = None;
        }
    }

    fn rest(&mut self) {
        if let Some((_, producer)) = &self.producer {
            producer.flush(self.run, LONGEST);
        }
    }
}

impl Producer {
    fn client_is_behind(&self) -> bool {
        use rdkafka::producer::Producer as _;
        self.client.in_flight_count() > 200
    }
}

//! Two of these believe to own the same transactional id. Each new owner fences the other, in the middle of whatever it
//! does; some also leave without a word, and their transaction to its timeout.

use std::time::Duration;

use super::producer::Producer;
use super::{Client, OUTPUTS, Run};
use crate::dice::Dice;
use crate::history::{Kind, Part, Told, Topic};
use crate::librdkafka::{Stop, settle};

pub(super) struct Duellist<'a> {
    run: &'a Run,
    name: String,
    id: String,
    dice: Dice,
    producer: Option<Producer>,
}

/// How an attempt shall end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    Commit,
    Abort,
    Leave,
}

impl<'a> Duellist<'a> {
    pub(super) fn new(run: &'a Run, (name, id): (&str, &str), dice: Dice) -> Self {
        Self { run, name: name.to_owned(), id: id.to_owned(), dice, producer: None }
    }

    fn transaction(&mut self, producer: &Producer, plan: Plan) -> Result<(), Stop> {
        use rdkafka::producer::Producer as _;
        settle(|| producer.client.begin_transaction())?;
        let attempt = self.run.history.lock().begin(&self.name, Kind::Transaction);
        // Until its end is asked for, a transaction is one that may not be seen.
        self.run.history.lock().end(attempt, Told::Aborted);
        for _ in 0..2 + self.dice.roll(5) {
            let part = Part { topic: Topic::Out, number: self.dice.partition(OUTPUTS) };
            producer.send(self.run, (attempt, part, None), &mut self.dice)?;
            if self.dice.permille(150) {
                std::thread::sleep(self.dice.ms(1, 30));
            }
        }
        match plan {
            Plan::Commit => {
                self.run.history.lock().end(attempt, Told::Nothing);
                producer.commit(self.run)?;
                self.run.history.lock().end(attempt, Told::Committed);
            }
            Plan::Abort => {
                producer.flush(self.run, Duration::from_millis(500));
                producer.abort(self.run)?;
            }
            Plan::Leave => {
                producer.flush(self.run, Duration::from_millis(500));
                self.producer = None;
            }
        }
        Ok(())
    }

    fn plan(&mut self) -> Plan {
        match self.dice.roll(100) {
            0..70 => Plan::Commit,
            70..95 => Plan::Abort,
            _ => Plan::Leave,
        }
    }
}

impl Client for Duellist<'_> {
    fn attempt(&mut self) {
        let Some(producer) = self.producer.take() else {
            match Producer::owner(self.run, &self.id) {
                Ok(producer) => self.producer = Some(producer),
                Err(_) => std::thread::sleep(self.dice.ms(20, 100)),
            }
            return;
        };
        let plan = self.plan();
        let ended = self.transaction(&producer, plan);
        let stays = match &ended {
            Ok(()) => plan != Plan::Leave && !self.dice.permille(20),
            Err(Stop::Abort(_)) => producer.abort(self.run).is_ok(),
            Err(Stop::StartOver(_)) => false,
        };
        producer.report(self.run);
        if stays {
            self.producer = Some(producer);
        } else {
            drop(producer);
            std::thread::sleep(self.dice.ms(50, 300));
        }
    }
}

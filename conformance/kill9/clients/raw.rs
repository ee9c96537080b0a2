//! Transactions and plain batches frame by frame, through a network that loses frames, doubles them, and delivers them
//! when their sender has long gone on. It does what a careful client does: asks again until there is an answer, and
//! takes its id anew before it goes on after an answer that was lost.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use kafka_protocol::protocol::Request;

use super::{Client, OUTPUTS, Run, TRANSACTION_TIMEOUT_MS};
use crate::child::{PATIENCE, now};
use crate::dice::Dice;
use crate::history::{Kind, Part, Told, Topic, Value, What};
use crate::raw;
use crate::raw::batch::{Batch, Pid};
use crate::raw::data::{Appended, produce_request};
use crate::raw::txn::{
    Member, add_offsets_request, add_partitions_request, end_txn_request, init_producer_request,
    txn_offset_commit_request,
};

const DUPLICATE_SEQUENCE_NUMBER: i16 = 46;
/// Codes that mean: ask again. Leader and coordinator that are away, a broker without room, an end under way.
pub(crate) const PASSING: [i16; 7] = [6, 7, 14, 15, 16, 51, 56];

/// Why an attempt goes no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stopped {
    /// The connection ended before the answer came.
    Lost,
    /// The id belongs to somebody else, or the transaction is over: a code that asking again does not change.
    Refused(i16),
}

/// One connection at a time, made again when it has ended.
pub(crate) struct Line<'a> {
    run: &'a Run,
    address: SocketAddr,
    name: String,
    client: Option<raw::Client>,
}

pub(super) struct Raw<'a> {
    run: &'a Run,
    name: String,
    dice: Dice,
    line: Line<'a>,
    /// Who owns the id, as far as this client knows, and who did before.
    owner: Option<Pid>,
    before: Option<Pid>,
    plain: Option<Pid>,
    /// The next sequence of each producer in each partition.
    sequences: BTreeMap<(Pid, Part), i32>,
    staged: i64,
}

impl<'a> Line<'a> {
    pub(crate) fn new(run: &'a Run, address: SocketAddr, name: &str) -> Self {
        Self { run, address, name: name.to_owned(), client: None }
    }

    /// Asks once. No answer means: nobody knows.
    pub(crate) fn ask<R: Request>(&mut self, version: i16, request: &R) -> Option<R::Response> {
        if self.client.is_none() {
            let client = raw::Client::try_connect(self.address);
            self.client = client.ok().map(|client| client.named(Some(&self.name)));
        }
        match self.client.as_mut()?.try_call(version, request) {
            Ok(answer) => Some(answer),
            // However it ended, what was asked may or may not have been done.
            Err(_) => {
                self.client = None;
                None
            }
        }
    }

    /// Asks until there is an answer other than one that passes; says whether an answer was lost on the way.
    fn settle<R: Request>(
        &mut self,
        (version, request): (i16, &R),
        code: impl Fn(&R::Response) -> i16,
    ) -> (R::Response, bool) {
        let (began, mut lost) = (now(), false);
        loop {
            match self.ask(version, request) {
                None => lost = true,
                Some(answer) => {
                    let code = code(&answer);
                    self.note(code);
                    if !PASSING.contains(&code) {
                        return (answer, lost);
                    }
                }
            }
            assert!(began.elapsed() < PATIENCE, "{}: no answer to key {} within {PATIENCE:?}", self.name, R::KEY);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn note(&self, code: i16) {
        if code != 0 {
            *self.run.refusals.lock().entry(code).or_default() += 1;
        }
    }
}

impl<'a> Raw<'a> {
    pub(super) fn new(run: &'a Run, name: &str, dice: Dice) -> Self {
        let line = Line::new(run, run.proxy, name);
        let (owner, before, plain, sequences) = (None, None, None, BTreeMap::new());
        Self { run, name: name.to_owned(), dice, line, owner, before, plain, sequences, staged: 0 }
    }

    fn part(&mut self) -> Part {
        Part { topic: Topic::Out, number: self.dice.partition(OUTPUTS) }
    }

    fn init(&mut self, id: Option<&str>) -> Pid {
        let request = init_producer_request(id, TRANSACTION_TIMEOUT_MS, raw::batch::NOBODY);
        let (answer, _) = self.line.settle((4, &request), |answer| answer.error_code);
        assert_eq!(answer.error_code, 0, "{}: InitProducerId", self.name);
        Pid { id: answer.producer_id.0, epoch: answer.producer_epoch }
    }

    /// New records of an attempt, as a batch with its values. Its sequence is taken.
    fn batch(&mut self, attempt: usize, part: Part, producer: Pid) -> (Vec<Value>, Batch) {
        let count = 1 + self.dice.roll(3);
        let values: Vec<_> = (0..count).map(|_| self.run.history.lock().write(attempt, part, None)).collect();
        let sequence = self.sequences.entry((producer, part)).or_default();
        let mut batch = Batch::idempotent(producer, *sequence, 0);
        *sequence += i32::try_from(count).unwrap();
        let payload = |value: &Value| (None, Some(format!("{value} {}", self.dice.padding()).into_bytes()));
        batch.records = values.iter().map(payload).collect();
        (values, batch)
    }

    /// Sends a batch, again if it must be; gives up after a lost answer if it is not to insist.
    fn append(&mut self, (values, batch): &(Vec<Value>, Batch), txn: bool, insist: bool) -> Result<(), Stopped> {
        let part = self.run.history.lock().part_of(values[0]);
        let id = txn.then_some(self.name.as_str());
        let request = produce_request(part.topic.name(), part.number, id, batch.bytes());
        let appended = if insist {
            Appended::of(&self.line.settle((9, &request), |answer| Appended::of(answer).code).0)
        } else {
            Appended::of(&self.line.ask(9, &request).ok_or(Stopped::Lost)?)
        };
        self.line.note(appended.code);
        let mut history = self.run.history.lock();
        for (n, value) in (0_i64..).zip(values) {
            match appended.code {
                0 => history.acknowledged(*value, Some(appended.base_offset + n)),
                DUPLICATE_SEQUENCE_NUMBER => history.acknowledged(*value, None),
                code => return Err(Stopped::Refused(code)),
            }
        }
        Ok(())
    }

    /// Records each for itself: asked again until they are there.
    fn plain(&mut self) {
        if self.plain.is_none() {
            self.plain = Some(self.init(None));
        }
        let producer = self.plain.unwrap();
        let attempt = self.run.history.lock().begin(&self.name, Kind::Plain);
        let part = self.part();
        let batch = self.batch(attempt, part, producer);
        if let Err(stopped) = self.append(&batch, false, true) {
            let detail = format!("a plain batch in its turn: {stopped:?}");
            self.run.history.lock().wrong(What::Broker, Some(batch.0[0]), detail);
            self.plain = None;
        }
    }

    /// A zombie: what was answered as over may change nothing.
    fn haunt(&mut self, over: Pid) {
        let attempt = self.run.history.lock().begin(&self.name, Kind::Fenced);
        let part = self.part();
        let (values, mut batch) = self.batch(attempt, part, over);
        batch.transactional = true;
        if self.append(&(values, batch), true, false) == Ok(()) {
            self.run.history.lock().wrong(What::FencedWrite, None, format!("{attempt} is acknowledged"));
        }
        if self.line.ask(3, &end_txn_request(&self.name, over, true)).is_some_and(|answer| answer.error_code == 0) {
            self.run.history.lock().wrong(What::FencedWrite, None, format!("a commit by {over:?} succeeds"));
        }
    }

    fn transaction(&mut self, owner: Pid) -> Result<(), Stopped> {
        let attempt = self.run.history.lock().begin(&self.name, Kind::Transaction);
        // Until its end is asked for, a transaction is one that may not be seen.
        self.run.history.lock().end(attempt, Told::Aborted);
        let name = self.name.clone();
        for _ in 0..1 + self.dice.roll(3) {
            let part = self.part();
            let request = add_partitions_request(&name, owner, &[(part.topic.name(), part.number)]);
            let code = |answer: &kafka_protocol::messages::AddPartitionsToTxnResponse| {
                answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            };
            let (answer, _) = self.line.settle((3, &request), code);
            refused(code(&answer))?;
            for _ in 0..1 + self.dice.roll(3) {
                let mut batch = self.batch(attempt, part, owner);
                batch.1.transactional = true;
                let insists = self.dice.permille(500);
                self.append(&batch, true, insists)?;
            }
        }
        let lost = self.dice.permille(500) && self.stage(attempt, owner)?;
        let commit = self.dice.permille(750);
        // What was lost may still be under way: under this epoch it could stage an old offset with the next
        // transaction, or end it.
        if self.end(attempt, owner, commit)? || lost { Err(Stopped::Lost) } else { Ok(()) }
    }

    /// An offset of the client's own group goes with the transaction. Says whether an answer was lost.
    fn stage(&mut self, attempt: usize, owner: Pid) -> Result<bool, Stopped> {
        let name = self.name.clone();
        let request = add_offsets_request(&name, owner, &name);
        let (answer, _) = self.line.settle((3, &request), |answer| answer.error_code);
        refused(answer.error_code)?;
        self.staged += 1;
        self.run.history.lock().stage(attempt, self.staged);
        let place = (Topic::In.name(), 0, self.staged);
        let request = txn_offset_commit_request((&name, owner), (&name, &Member::default()), place);
        let code =
            |answer: &kafka_protocol::messages::TxnOffsetCommitResponse| answer.topics[0].partitions[0].error_code;
        let (answer, lost) = self.line.settle((3, &request), code);
        refused(code(&answer)).map(|()| lost)
    }

    /// Says whether an answer was lost.
    fn end(&mut self, attempt: usize, owner: Pid, commit: bool) -> Result<bool, Stopped> {
        if commit {
            self.run.history.lock().end(attempt, Told::Nothing);
        }
        let request = end_txn_request(&self.name, owner, commit);
        let (answer, lost) = self.line.settle((3, &request), |answer| answer.error_code);
        refused(answer.error_code)?;
        if commit {
            self.run.history.lock().end(attempt, Told::Committed);
        }
        Ok(lost)
    }
}

fn refused(code: i16) -> Result<(), Stopped> {
    if code == 0 { Ok(()) } else { Err(Stopped::Refused(code)) }
}

impl Client for Raw<'_> {
    fn attempt(&mut self) {
        if self.dice.permille(300) {
            return self.plain();
        }
        let owner = match self.owner {
            Some(owner) => owner,
            None => {
                let name = self.name.clone();
                let owner = self.init(Some(&name));
                if let Some(over) = self.before.take().filter(|_| self.dice.permille(500)) {
                    self.haunt(over);
                }
                self.owner.insert(owner).to_owned()
            }
        };
        if self.transaction(owner).is_err() {
            self.before = self.owner.take();
        }
    }
}

//! A turn of a partition's owner.

use bytes::{Bytes, BytesMut};

use super::room::CaughtUp;
use super::tally::Counted;
use super::{Held, PartitionOwner, Syncing, Turn, Until};
use crate::config::MarkerSync;
use crate::engine::batch::check::Times;
use crate::engine::batch::{self, marker};
use crate::engine::partition::{Aborted, AdminMark, Admission, MarkOrder, MarkStep, NotAdmitted, Written};
use crate::engine::{Now, Offset, Refusal, ReplyTo};
use crate::known_bugs::{Bug, is_in};
use crate::runtime::events::Event;
use crate::runtime::post::{Answer, Append, LedgerLetter, MarkResult, PartLetter, Post, Produced, SealState, Sealed};
use crate::runtime::tracks::Moment;
use crate::store::StoreError;
use crate::store::log::Appended;

/// How a transaction stands in a partition whose files are not what they should be: nobody reads it.
pub(super) const SEALED_DAMAGED: SealState = SealState::Durable(Offset::MAX);

/// What a turn gathers before its one write.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) bytes: Vec<Bytes>,
    aborted: Vec<Aborted>,
    pub(super) held: Vec<Held>,
    at_once: Vec<Post>,
    /// Who must hear of it if the write fails.
    pub(super) refusable: Vec<Post>,
    /// Debts whose markers are among the bytes, or are there already.
    marked: Vec<u64>,
    /// Permissions closed, each with the log end at that place of the mailbox.
    seals: Vec<(Sealed, Offset)>,
    /// Something other than a marker that closes a transaction is among the bytes.
    mixed: bool,
    /// What the bytes are, for the metrics.
    counted: Vec<Counted>,
}

impl PartitionOwner {
    /// One turn.
    ///
    /// # Errors
    /// `Broken`: it is not known what is on disk; the process starts over. Anything less is handled here: what could
    /// not be written is refused, and the partition is read anew from its files; if there is no room even for that, with
    /// a later turn.
    pub fn turn(&mut self, mut letters: Vec<PartLetter>, now: Now) -> Result<Turn, StoreError> {
        let mut turn = Turn::default();
        if self.catch_up(&mut letters, &mut turn)? == CaughtUp::No {
            return Ok(turn);
        }
        // Letters that write nothing may be worked off by a thread that must not wait for the disk.
        let writes = |letter: &PartLetter| {
            matches!(letter, PartLetter::Append(_) | PartLetter::Mark(_) | PartLetter::AdminMark { .. })
        };
        if letters.iter().any(writes) {
            self.checkpoint_if_due(&mut turn)?;
        }
        self.expire_producers(now);
        self.last_turn = now;
        let mut gathered = Gathered::default();
        let end_before = self.engine.log_end();
        for letter in letters {
            self.take(letter, now, &mut gathered, &mut turn)?;
        }
        if gathered.bytes.is_empty() {
            self.finish(gathered, &mut turn);
            return Ok(turn);
        }
        match self.write(&gathered, now) {
            Ok(_) => self.written(gathered, end_before, &mut turn)?,
            Err(error @ StoreError::Broken(_)) => return Err(error),
            Err(error @ (StoreError::Full(_) | StoreError::Damaged(_))) => {
                self.not_written(gathered, &error, &mut turn)?
            }
        }
        Ok(turn)
    }

    /// Appends what was gathered. A marker that finds no room gets what was set aside: its decision stands already.
    fn write(&mut self, gathered: &Gathered, now: Now) -> Result<Appended, StoreError> {
        match self.log.append(&gathered.bytes, now.wall_ms) {
            Err(StoreError::Full(_)) if !gathered.marked.is_empty() && self.settings.space.spend_reserve()? => {
                self.log.append(&gathered.bytes, now.wall_ms)
            }
            result => result,
        }
    }

    fn take(
        &mut self,
        letter: PartLetter,
        now: Now,
        gathered: &mut Gathered,
        turn: &mut Turn,
    ) -> Result<(), StoreError> {
        match letter {
            PartLetter::Append(append) => self.admit(*append, now, gathered),
            PartLetter::Grant(grant) => {
                self.grants.retain(|have| have.producer.id != grant.producer.id);
                self.grants.push(grant.clone());
                let (producer_id, number) = (grant.producer.id, grant.txn_no);
                self.engine.grant(grant);
                // A grant that had to wait for the disk may come behind the seal: it opens nothing any more.
                if self.sealed.contains(&(producer_id, number)) {
                    self.engine.seal(producer_id, number);
                }
            }
            PartLetter::Seal { id, producer_id, number, round } => {
                let end = if is_in(Bug::SealClosesNothing) {
                    self.engine.log_end()
                } else {
                    self.sealed.insert((producer_id, number));
                    self.engine.seal(producer_id, number)
                };
                let asked = Sealed { id, number, round, part: self.part, state: SealState::Asked };
                gathered.seals.push((asked, end));
            }
            PartLetter::Unseal { producer_id, number } => {
                self.sealed.remove(&(producer_id, number));
                self.engine.unseal(producer_id, number);
            }
            PartLetter::Mark(orders) => {
                for (debt, order) in orders {
                    self.mark(debt, &order, now, gathered);
                }
            }
            PartLetter::AdminMark { mark, to } => self.mark_for_tool(&mark, to, now, gathered),
            PartLetter::Describe(to) => {
                let post = Post::Answer(to, Answer::Producers(self.engine.describe()));
                gathered.refusable.push(Post::Answer(to, Answer::Refused(Refusal::KafkaStorageError)));
                gathered.held.push(Held::until_synced(post));
            }
            PartLetter::Keep(keeping) => self.keep(keeping),
            PartLetter::Retain => self.retain(now, gathered)?,
            PartLetter::DeleteRecords { offset, to } => self.delete_records(offset, to, gathered, turn)?,
            PartLetter::Trim(trim) => self.trim(*trim, turn)?,
            PartLetter::LogStartStored { log_start, to } => self.log_start_stored(log_start, to, turn),
            PartLetter::LogStartRefused { to } => self.log_start_refused(to, turn),
            PartLetter::Unlink => self.unlink(turn),
            PartLetter::Load => {}
            PartLetter::Close => self.close(gathered, turn)?,
            PartLetter::Drop => {}
        }
        Ok(())
    }

    fn admit(&mut self, append: Append, now: Now, gathered: &mut Gathered) {
        let admitted = self.engine.admit(&append.header, append.id.as_ref(), now);
        let (answer, durable) = match admitted {
            Ok(Admission::Append { base_offset, .. }) => {
                gathered.bytes.push(self.placed(&append, base_offset, now));
                gathered.counted.push(Counted::batch(&append.header, append.batch.len()));
                gathered.mixed = true;
                let append_time_ms = if append.times == Times::LogAppendTime { now.wall_ms } else { -1 };
                let log_start = self.engine.log_start();
                let produced = Answer::Produced(Produced { base_offset, append_time_ms, log_start });
                (produced, append.durable || append.header.is_transactional())
            }
            Ok(Admission::Duplicate { base_offset, .. }) => {
                self.settings.events.metrics().duplicate_batch();
                let log_start = self.engine.log_start();
                (Answer::Produced(Produced { base_offset, append_time_ms: -1, log_start }), true)
            }
            Err(NotAdmitted::Refused(refusal)) => {
                self.settings.events.refused_sequence(refusal);
                (Answer::RefusedAt(refusal, self.engine.log_start()), true)
            }
            Err(NotAdmitted::Unverified) => (Answer::Unverified, false),
            Err(NotAdmitted::Deciding) => (Answer::Refused(Refusal::ConcurrentTransactions), false),
        };
        let Some(to) = append.to else { return };
        let row = append.header.producer().filter(|_| append.header.is_transactional());
        let row = row.and_then(|producer| self.engine.grant_row(producer.id));
        // What the coordinator is asked about holds whether or not the turn's bytes reach the file; all else may rest on
        // them, a sequence that is refused as well.
        let unwritten = match admitted {
            Err(NotAdmitted::Unverified) => Answer::Unverified,
            Err(NotAdmitted::Deciding) => Answer::Refused(Refusal::ConcurrentTransactions),
            Ok(_) | Err(NotAdmitted::Refused(_)) => Answer::Refused(Refusal::KafkaStorageError),
        };
        gathered.refusable.push(Post::Answer(to, unwritten));
        let post = Post::Answer(to, answer);
        let until = if durable { Until::Synced { row } } else { Until::Written };
        gathered.held.push(Held { post, until });
    }

    /// The batch as it is stored: with its place, and the broker's time where the topic asks for it.
    fn placed(&self, append: &Append, base_offset: i64, now: Now) -> Bytes {
        let mut bytes = BytesMut::from(&append.batch[..]);
        batch::patch(&mut bytes, base_offset, self.settings.incarnation);
        if append.times == Times::LogAppendTime {
            batch::stamp_log_append_time(&mut bytes, now.wall_ms);
        }
        bytes.freeze()
    }

    fn mark(&mut self, debt: u64, order: &MarkOrder, now: Now, gathered: &mut Gathered) {
        gathered.marked.push(debt);
        self.settings.events.note(&Moment::Ordered { debt, part: self.part });
        self.grants.retain(|grant| Some(grant.txn_no) != order.txn_no);
        self.sealed.retain(|(_, number)| Some(*number) != order.txn_no);
        let written = match self.engine.mark(order, now) {
            MarkStep::Write(written) => written,
            MarkStep::AlreadyDone | MarkStep::Fenced => return,
        };
        let marker = marker::Marker {
            producer: order.producer,
            outcome: order.outcome,
            coordinator_epoch: self.settings.incarnation,
        };
        self.gather_marker(&marker, &written, now, gathered);
        gathered.mixed |= written.closes.is_none();
    }

    /// A marker without a decision: no restart would write it again, so it is shown and answered when it is on disk.
    fn mark_for_tool(&mut self, mark: &AdminMark, to: ReplyTo, now: Now, gathered: &mut Gathered) {
        let answer = match self.engine.admin_mark(mark, now) {
            Ok(written) => {
                let AdminMark { producer, outcome, coordinator_epoch, .. } = *mark;
                let marker = marker::Marker { producer, outcome, coordinator_epoch };
                self.gather_marker(&marker, &written, now, gathered);
                gathered.mixed = true;
                if written.closes.is_some() {
                    self.settings.events.say(&Event::EndedByTool { producer, part: self.part });
                }
                Answer::Done
            }
            Err(refusal) => {
                if refusal == Refusal::TransactionCoordinatorFenced {
                    let AdminMark { producer, coordinator_epoch, .. } = *mark;
                    let part = self.part;
                    self.settings.events.say(&Event::StaleCoordinator { producer, part, coordinator_epoch });
                }
                Answer::Refused(refusal)
            }
        };
        gathered.refusable.push(Post::Answer(to, Answer::Refused(Refusal::KafkaStorageError)));
        gathered.held.push(Held::until_synced(Post::Answer(to, answer)));
    }

    fn gather_marker(&self, marker: &marker::Marker, written: &Written, now: Now, gathered: &mut Gathered) {
        let stamped = self.source.times == Times::LogAppendTime;
        let bytes = marker::write(marker, written.offset, self.settings.incarnation, now.wall_ms, stamped);
        gathered.bytes.push(Bytes::copy_from_slice(&bytes));
        gathered.counted.push(Counted::marker(marker.producer, marker.outcome));
        gathered.aborted.extend(written.aborted);
    }

    /// The bytes are in the file: what becomes of the turn.
    fn written(&mut self, mut gathered: Gathered, end_before: i64, turn: &mut Turn) -> Result<(), StoreError> {
        for aborted in std::mem::take(&mut gathered.aborted) {
            self.log.note_aborted(aborted);
        }
        self.tally.count(&gathered.counted);
        self.shared.set_producers(self.engine.producer_count());
        for debt in &gathered.marked {
            self.settings.events.note(&Moment::Appended { debt: *debt, part: self.part });
        }
        let view = self.view();
        // Rule L: a run of closing markers that starts where everything is published may be shown before its own
        // sync, because its decisions are on disk and a restart writes the same markers at the same offsets: unless one
        // that is owed longer could not be written yet, which a restart would write first.
        let redone = self.settings.marker_sync == MarkerSync::Redo
            && !gathered.mixed
            && !self.unpaid
            && self.shared.published().watermark == end_before;
        if redone || !self.settings.is_strict() {
            self.shared.publish(view);
        }
        if redone && !gathered.marked.is_empty() {
            let appended = LedgerLetter::Marked(self.part, gathered.marked.clone(), MarkResult::Appended);
            turn.at_once.push(Post::Ledger(appended));
        }
        if !self.settings.is_strict() {
            let end = u64::try_from(self.engine.log_end()).unwrap_or(0);
            turn.at_once.extend(self.shared.lane.reached(end));
        }
        self.finish(gathered, turn);
        if self.settings.is_strict() {
            turn.sync = self.log.take_unsynced().map(|job| Syncing { jobs: vec![job], then: view });
        }
        Ok(())
    }

    /// Nothing was written: every writer of the turn is refused, and the partition is read anew from its files, for
    /// what it took into memory is not there. Should that show damage, nobody is left without an answer.
    fn not_written(&mut self, mut gathered: Gathered, error: &StoreError, turn: &mut Turn) -> Result<(), StoreError> {
        tracing::warn!(part = self.part.0, %error, "append refused");
        turn.at_once.append(&mut gathered.refusable);
        let result = match self.reload() {
            Ok(()) | Err(StoreError::Full(_)) => MarkResult::Failed(Refusal::KafkaStorageError),
            Err(StoreError::Damaged(why)) => {
                turn.damaged = Some(why);
                MarkResult::Parked
            }
            Err(error @ StoreError::Broken(_)) => return Err(error),
        };
        if !gathered.marked.is_empty() {
            turn.at_once.push(Post::Ledger(LedgerLetter::Marked(self.part, gathered.marked, result)));
        }
        if turn.damaged.is_some() {
            let seals = gathered.seals.into_iter();
            turn.at_once.extend(seals.map(|(seal, _)| sealed(seal, SEALED_DAMAGED)));
            return Ok(());
        }
        if self.waits_for_room() {
            tracing::warn!(part = self.part.0, "no room to read the partition anew: it waits, and takes nothing");
        }
        // What a seal closed over is not there: the log ends where it did before.
        let end = self.log.next_offset();
        gathered.seals.iter_mut().for_each(|seal| seal.1 = seal.1.min(end));
        self.answer_seals(gathered.seals, turn);
        Ok(())
    }

    /// The same letter twice: closed, and on disk. Whichever comes first, the later one takes nothing back.
    pub(super) fn answer_seals(&self, seals: Vec<(Sealed, Offset)>, turn: &mut Turn) {
        for (seal, end) in seals {
            turn.at_once.push(sealed(seal.clone(), SealState::Closed(end)));
            let durable = sealed(seal, SealState::Durable(end));
            self.hold(Held::until_synced(durable), turn);
        }
    }

    fn finish(&mut self, gathered: Gathered, turn: &mut Turn) {
        turn.at_once.extend(gathered.at_once);
        self.answer_seals(gathered.seals, turn);
        for held in gathered.held {
            self.hold(held, turn);
        }
        if !gathered.marked.is_empty() {
            let synced = LedgerLetter::Marked(self.part, gathered.marked, MarkResult::Synced);
            self.hold(Held::until_synced(Post::Ledger(synced)), turn);
        }
    }

    /// A clean stop's recovery point, over what is on disk: while bytes are on their way there, it is asked for again
    /// when they have arrived.
    fn close(&mut self, gathered: &mut Gathered, turn: &mut Turn) -> Result<(), StoreError> {
        if gathered.bytes.is_empty() && self.shared.is_idle() {
            // After a clean stop the indexes alone say which timestamp is the largest.
            self.log.seal();
            return self.checkpoint(turn);
        }
        gathered.held.push(Held::until_synced(Post::Part(self.part, PartLetter::Close)));
        Ok(())
    }
}

/// How one transaction stands in one partition, to the ledger.
pub(super) fn sealed(seal: Sealed, state: SealState) -> Post {
    Post::Ledger(LedgerLetter::Sealed(Sealed { state, ..seal }))
}

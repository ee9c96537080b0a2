//! The log start moves up, and what lies below it goes: by retention, or because a client asked.
//!
//! In this order, so that a crash between any two steps loses nothing and is not taken for damage: a snapshot of the
//! producers at or above the new start is on disk, for they outlive their records (T-542); the new start is stored in
//! `meta.db`, on disk; it is published; segments leave the log; their files are removed. Files that a crash brings back
//! are removed by the next opening. Each step is a letter of its own that nobody waits behind.

use super::turn::Gathered;
use super::{Held, PartitionOwner, Turn};
use crate::engine::log::Retention;
use crate::engine::{Now, Offset, Refusal, ReplyTo};
use crate::runtime::post::{Answer, LedgerLetter, MoveLogStart, PartLetter, Post, Trim};
use crate::store::StoreError;
use crate::store::log::{Dropped, Left};

/// Segments whose files are removed in one turn: a large file takes the file system a while, and others wait behind.
const UNLINKED_AT_ONCE: usize = 4;

impl PartitionOwner {
    /// Finds what has expired, and sets its end on the way.
    pub(super) fn retain(&mut self, now: Now, gathered: &mut Gathered) -> Result<(), StoreError> {
        let Some(retention) = self.source.retention else { return Ok(()) };
        let log_start = match self.expired(&retention, now, gathered) {
            Ok(Some(log_start)) => log_start,
            Ok(None) => return Ok(()),
            Err(error @ StoreError::Broken(_)) => return Err(error),
            Err(error @ (StoreError::Full(_) | StoreError::Damaged(_))) => {
                tracing::warn!(part = self.part.0, %error, "retention cannot tell what has expired; tried again later");
                return Ok(());
            }
        };
        let log_start = log_start.max(self.engine.log_start());
        // One at a time: whoever asks more often than files can follow must not fill the mailbox.
        if self.moving.is_none_or(|moving| moving < log_start) {
            self.move_log_start(log_start, None, gathered)?;
        }
        Ok(())
    }

    /// Where the log is to start. If all of it has expired the active segment is sealed for that; not while there are
    /// batches on their way into it.
    fn expired(&mut self, retention: &Retention, now: Now, gathered: &Gathered) -> Result<Option<Offset>, StoreError> {
        let expired = self.log.expired(retention, self.decided(), now.wall_ms)?;
        let Some(end) = expired.filter(|end| *end == self.log.next_offset()) else {
            return Ok(expired);
        };
        let active = self.log.active_base();
        if gathered.bytes.is_empty() {
            match self.log.roll(now.wall_ms) {
                Ok(()) => return Ok(Some(end)),
                Err(StoreError::Full(why)) => tracing::warn!(part = self.part.0, why, "no new segment"),
                Err(error @ (StoreError::Damaged(_) | StoreError::Broken(_))) => return Err(error),
            }
        }
        Ok(Some(active).filter(|active| self.log.drops_below(*active)))
    }

    /// Below this everything is decided and shown (T-543 R): the last stable offset that readers know, for a marker
    /// that is not on disk yet decides nothing, and what this owner knows to be open.
    fn decided(&self) -> Offset {
        let shown = self.shared.published().last_stable;
        self.engine.first_unstable().map_or(shown, |first| first.min(shown))
    }

    /// DeleteRecords. May cut into an open transaction (T-540), never beyond the watermark.
    pub(super) fn delete_records(
        &mut self,
        offset: Offset,
        to: ReplyTo,
        gathered: &mut Gathered,
        turn: &mut Turn,
    ) -> Result<(), StoreError> {
        let watermark = self.shared.published().watermark;
        let log_start = if offset == -1 { watermark } else { offset };
        if log_start < 0 || log_start > watermark {
            turn.at_once.push(Post::Answer(to, Answer::Refused(Refusal::OffsetOutOfRange)));
        } else if log_start <= self.engine.log_start() {
            turn.at_once.push(Post::Answer(to, Answer::LogStart(self.engine.log_start())));
        } else {
            self.move_log_start(log_start, Some(to), gathered)?;
        }
        Ok(())
    }

    /// Where no segment goes the row is all there is to do. Otherwise a snapshot is written first, of the state at this
    /// place of the mailbox. Either waits until the log is on disk up to here, this turn's bytes included, or is forgotten
    /// with them: readers may be shown more than is on disk, and a log that ends below its stored start takes nothing any
    /// more.
    fn move_log_start(
        &mut self,
        log_start: Offset,
        to: Option<ReplyTo>,
        gathered: &mut Gathered,
    ) -> Result<(), StoreError> {
        let drops = self.log.drops_below(log_start);
        if !drops && log_start <= self.engine.log_start() {
            return Ok(());
        }
        self.moving = self.moving.max(Some(log_start));
        let post = if drops {
            let trim = Trim { log_start, snapshot: self.engine.snapshot(), at: self.engine.log_end(), to };
            Post::Part(self.part, PartLetter::Trim(Box::new(trim)))
        } else {
            // Here the lane does not say what is on disk. What this turn is still to write lies above the start.
            if !self.settings.is_strict() {
                self.sync_written()?;
            }
            Post::Ledger(LedgerLetter::MoveLogStart(MoveLogStart { part: self.part, log_start, point: None, to }))
        };
        gathered.held.push(Held::until_synced(post));
        let refused = Answer::Refused(Refusal::KafkaStorageError);
        gathered.refusable.extend(to.map(|to| Post::Answer(to, refused)));
        Ok(())
    }

    /// Writes the snapshot, and asks for the new start to be stored.
    pub(super) fn trim(&mut self, trim: Trim, turn: &mut Turn) -> Result<(), StoreError> {
        let Trim { log_start, snapshot, at, to } = trim;
        self.log.note_synced(Offset::try_from(self.shared.lane.is_at()).unwrap_or(Offset::MAX));
        if !self.settings.is_strict() {
            self.sync_written()?;
        }
        let point = match self.log.checkpoint(&snapshot, at) {
            // It is to make room.
            Err(StoreError::Full(_)) if self.settings.space.spend_reserve()? => self.log.checkpoint(&snapshot, at),
            made => made,
        };
        let point = match point {
            Ok(point) => point,
            Err(error @ StoreError::Broken(_)) => return Err(error),
            Err(error @ (StoreError::Full(_) | StoreError::Damaged(_))) => {
                tracing::warn!(part = self.part.0, %error, "nothing removed: no snapshot of the producers");
                None
            }
        };
        let Some(point) = point else {
            self.log_start_refused(to, turn);
            return Ok(());
        };
        self.source.row.point = Some(point);
        let moved = MoveLogStart { part: self.part, log_start, point: Some(point), to };
        turn.at_once.push(Post::Ledger(LedgerLetter::MoveLogStart(moved)));
        Ok(())
    }

    /// Nothing below the old start was touched; the next look tries again.
    pub(super) fn log_start_refused(&mut self, to: Option<ReplyTo>, turn: &mut Turn) {
        self.moving = None;
        let refused = Answer::Refused(Refusal::KafkaStorageError);
        turn.at_once.extend(to.map(|to| Post::Answer(to, refused)));
    }

    /// The start is stored: readers are told, then segments go.
    pub(super) fn log_start_stored(&mut self, log_start: Offset, to: Option<ReplyTo>, turn: &mut Turn) {
        self.engine.set_log_start(log_start);
        let log_start = self.engine.log_start();
        self.source.row.log_start = log_start;
        self.moving = self.moving.filter(|moving| *moving > log_start);
        self.shared.move_log_start(log_start);
        turn.at_once.extend(to.map(|to| Post::Answer(to, Answer::LogStart(log_start))));
        // A segment that was begun since the start was asked for may lie below it: no snapshot stands for that one yet.
        let covered = self.source.row.point.map_or(0, |point| point.snapshot_at);
        let Dropped { segments, bytes } = self.log.drop_below(log_start.min(covered));
        if segments > 0 {
            self.settings.events.metrics().segments_removed(segments, bytes);
            let (part, dir) = (self.part.0, self.source.dir.display());
            tracing::info!(part, %dir, log_start, segments, bytes, "segments removed");
            self.unlink(turn);
        }
    }

    /// Removes some files; asks itself for more, so that letters in between have their turn. A file that cannot be
    /// removed is left to the next opening: it is below the log start, and in nobody's way.
    pub(super) fn unlink(&mut self, turn: &mut Turn) {
        let left = self.log.unlink(UNLINKED_AT_ONCE);
        let more = match left {
            Ok(left) => left == Left::More,
            Err(error) => {
                tracing::warn!(part = self.part.0, %error, "a file below the log start is left behind");
                true
            }
        };
        if more {
            turn.at_once.push(Post::Part(self.part, PartLetter::Unlink));
        }
    }
}

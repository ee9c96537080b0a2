//! An owner on a full disk: a marker is written from what was set aside; and where there is not even room to read the
//! partition anew after a write that failed, its owner waits, takes nothing, and forgets no permission.

use super::place::{answer_damaged, answer_unopened};
use super::{PartitionOwner, Turn};
use crate::engine::Now;
use crate::runtime::post::{Answer, PartLetter, Post, SealState, Sealed};
use crate::store::StoreError;

/// How an owner's memory stands to its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Memory {
    /// It holds what they hold.
    AsFiles,
    /// It took in what could not be written, and there was no room to read the files anew.
    Ahead,
}

impl PartitionOwner {
    /// Before a turn: reads the files anew if that is still to be done. Gives the turn there is instead if it cannot be.
    ///
    /// # Errors
    /// `Broken`.
    pub(super) fn catch_up(&mut self, letters: &mut Vec<PartLetter>, turn: &mut Turn) -> Result<CaughtUp, StoreError> {
        if self.memory == Memory::AsFiles {
            return Ok(CaughtUp::Yes);
        }
        match self.reload() {
            Ok(()) => Ok(CaughtUp::Yes),
            Err(StoreError::Full(_)) => {
                for letter in std::mem::take(letters) {
                    self.take_without_room(letter, turn);
                }
                Ok(CaughtUp::No)
            }
            Err(StoreError::Damaged(why)) => {
                let part = self.part;
                let letters = std::mem::take(letters).into_iter();
                turn.at_once = letters.filter_map(|letter| answer_damaged(part, letter)).collect();
                turn.damaged = Some(why);
                Ok(CaughtUp::No)
            }
            Err(error @ StoreError::Broken(_)) => Err(error),
        }
    }

    /// Permissions are remembered for the time after. Where the log ends is known: what could not be written was undone.
    fn take_without_room(&mut self, letter: PartLetter, turn: &mut Turn) {
        match letter {
            PartLetter::Grant(grant) => {
                self.grants.retain(|have| have.producer.id != grant.producer.id);
                self.grants.push(grant);
            }
            PartLetter::Seal { id, producer_id, number, round } => {
                self.sealed.insert((producer_id, number));
                let asked = Sealed { id, number, round, part: self.part, state: SealState::Asked };
                self.answer_seals(vec![(asked, self.log.next_offset())], turn);
            }
            PartLetter::Unseal { producer_id, number } => {
                self.sealed.remove(&(producer_id, number));
            }
            // It is on disk, so readers may know; what lies below it goes when the files are read anew.
            PartLetter::LogStartStored { log_start, to } => {
                self.source.row.log_start = self.source.row.log_start.max(log_start);
                self.shared.move_log_start(log_start);
                turn.at_once.extend(to.map(|to| Post::Answer(to, Answer::LogStart(log_start))));
            }
            PartLetter::Keep(keeping) => self.keep(keeping),
            letter @ (PartLetter::Append(_)
            | PartLetter::Retain
            | PartLetter::DeleteRecords { .. }
            | PartLetter::Trim(_)
            | PartLetter::LogStartRefused { .. }
            | PartLetter::Unlink
            | PartLetter::Mark(_)
            | PartLetter::AdminMark { .. }
            | PartLetter::Describe(_)
            | PartLetter::Load
            | PartLetter::Drop
            | PartLetter::Close) => turn.at_once.extend(answer_unopened(self.part, letter)),
        }
    }

    /// Whether the owner waits for room.
    #[must_use]
    pub fn waits_for_room(&self) -> bool {
        self.memory == Memory::Ahead
    }

    /// One turn, and its sync, at once: for markers that are owed before anybody is served.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub fn turn_to_disk(&mut self, letters: Vec<PartLetter>, now: Now) -> Result<Turn, StoreError> {
        let mut turn = self.turn(letters, now)?;
        // What a start wrote is on disk before the debt is forgotten, however little is promised later.
        self.sync_written()?;
        let shared = std::sync::Arc::clone(&self.shared);
        let mut next = turn.sync.take().and_then(|syncing| shared.put_in_line(syncing));
        while let Some(syncing) = next {
            syncing.run()?;
            turn.at_once.extend(shared.synced(syncing.end(), syncing.then));
            next = shared.next_sync();
        }
        Ok(turn)
    }

    /// Shows readers the partition as it is; all of it is on disk.
    pub fn show(&self) {
        self.shared.publish(self.view());
    }
}

/// Whether an owner can go on with its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CaughtUp {
    /// It can.
    Yes,
    /// All letters are answered as far as they can be.
    No,
}

//! A partition's place: the owner if there is one, and what is said in its stead if there is none. Opens the partition
//! at its first letter, takes it out of service when it is damaged, drops its files with its topic.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::load::{Source, salvage};
use super::published::{Availability, Published, Shared};
use super::turn::{SEALED_DAMAGED, sealed};
use super::{PartitionOwner, Settings, Turn};
use crate::engine::partition::MarkOrder;
use crate::engine::{Now, Offset, Outcome, PartId, Producer, Refusal};
use crate::runtime::events::Event;
use crate::runtime::post::{Answer, LedgerLetter, MarkResult, PartLetter, Post, SealState, Sealed};
use crate::store::StoreError;
use crate::store::log::delete_dir_of;

/// One partition, whatever state it is in. A plain value that its driver gives letters.
pub struct Place {
    part: PartId,
    shared: Arc<Shared>,
    settings: Settings,
    owned: Owned,
    /// Markers that a start had no room for, oldest first. Nobody is served before they are written (storage rule O).
    owes: Vec<(u64, MarkOrder)>,
    /// Whose transactions the ledger held open here when a start had no room to open the partition: any other that its log
    /// holds open is nobody's, and closed before anybody is served (storage rule O). `None` once that was compared.
    uncompared: Option<Vec<Producer>>,
    /// Debts whose markers could not be written when they came: a restart writes them before any later one.
    unpaid: BTreeSet<u64>,
}

/// The number under which markers go that no decision asked for.
const ORPHAN: u64 = u64::MAX;

/// What closes a transaction that nobody owns.
#[must_use]
pub fn orphan(producer: Producer, incarnation: i32) -> (u64, MarkOrder) {
    let order = MarkOrder {
        producer,
        outcome: Outcome::Abort,
        coordinator_epoch: incarnation,
        sealed_end: Offset::MAX,
        txn_no: None,
        redo: false,
    };
    (ORPHAN, order)
}

/// The owner, if the partition has been used.
enum Owned {
    Unloaded(Box<Source>),
    Loaded(Box<PartitionOwner>),
    /// Why, and where the files are that go with the topic.
    Damaged(String, Box<Source>),
    Gone,
}

impl Place {
    /// A partition that is opened at its first letter.
    #[must_use]
    pub fn unloaded(part: PartId, source: Source, (settings, shared): (Settings, Arc<Shared>)) -> Self {
        Self {
            part,
            shared,
            settings,
            owned: Owned::Unloaded(Box::new(source)),
            owes: Vec::new(),
            uncompared: None,
            unpaid: BTreeSet::new(),
        }
    }

    /// A partition whose owner a start has made already.
    #[must_use]
    pub fn loaded(owner: PartitionOwner, (settings, shared): (Settings, Arc<Shared>)) -> Self {
        let (part, owned) = (owner.part(), Owned::Loaded(Box::new(owner)));
        Self { part, shared, settings, owned, owes: Vec::new(), uncompared: None, unpaid: BTreeSet::new() }
    }

    /// The partition, not served before these markers are written.
    #[must_use]
    pub fn owing(mut self, owes: Vec<(u64, MarkOrder)>) -> Self {
        if !owes.is_empty() {
            self.shared.publish(Published::not(Availability::Unloaded));
        }
        self.owes = owes;
        self
    }

    /// The partition, to be compared with what the ledger knew to be open when it is opened.
    #[must_use]
    pub fn uncompared(mut self, known: Vec<Producer>) -> Self {
        self.uncompared = Some(known);
        self
    }

    /// Transactions open in a log opened late that nobody owns are owed a marker like the others. Their epoch stays: what
    /// might be written under it needs a permission, which only a transaction of the ledger's own gets.
    fn compare(&mut self, open: &[Producer]) {
        let Some(known) = self.uncompared.take() else { return };
        let decided: Vec<i64> = self.owes.iter().map(|(_, order)| order.producer.id).collect();
        for producer in open.iter().filter(|open| !decided.contains(&open.id) && !known.contains(open)) {
            let durability = self.settings.durability;
            self.settings.events.say(&Event::Orphan { producer: *producer, part: self.part, durability });
            self.owes.push(orphan(*producer, self.settings.incarnation));
        }
    }

    /// Whether something is to be done here as soon as there is room.
    #[must_use]
    pub fn waits_for_room(&self) -> bool {
        let behind = match &self.owned {
            Owned::Loaded(owner) => owner.waits_for_room(),
            Owned::Unloaded(_) | Owned::Damaged(..) | Owned::Gone => false,
        };
        behind || !self.owes.is_empty()
    }

    /// A partition that a start found damaged.
    #[must_use]
    pub fn damaged(
        part: PartId,
        (why, source): (String, Source),
        (settings, shared): (Settings, Arc<Shared>),
        now: Now,
    ) -> Self {
        let mut place = Self::unloaded(part, source, (settings, shared));
        place.quarantine(why, now);
        place
    }

    /// Why the partition is not served, if it is damaged.
    #[must_use]
    pub fn why_damaged(&self) -> Option<&str> {
        match &self.owned {
            Owned::Damaged(why, _) => Some(why),
            Owned::Unloaded(_) | Owned::Loaded(_) | Owned::Gone => None,
        }
    }

    /// Which partition this is.
    #[must_use]
    pub fn part(&self) -> PartId {
        self.part
    }

    /// Whether the partition has an owner.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        matches!(self.owned, Owned::Loaded(_))
    }

    /// Whether the partition has not been opened yet.
    #[must_use]
    pub fn is_unloaded(&self) -> bool {
        matches!(self.owned, Owned::Unloaded(_))
    }

    /// Where the files are of a partition that has not been opened yet.
    #[must_use]
    pub fn unopened(&self) -> Option<&Source> {
        match &self.owned {
            Owned::Unloaded(source) => Some(source),
            Owned::Loaded(_) | Owned::Damaged(..) | Owned::Gone => None,
        }
    }

    /// The owner, to look at (tests).
    #[cfg(any(test, simulator))]
    pub(crate) fn owner(&self) -> Option<&PartitionOwner> {
        match &self.owned {
            Owned::Loaded(owner) => Some(owner),
            Owned::Unloaded(_) | Owned::Damaged(..) | Owned::Gone => None,
        }
    }

    /// One turn: whoever asks is answered, also where there is no owner.
    ///
    /// # Errors
    /// `Broken`: the process starts over.
    pub fn turn(&mut self, letters: Vec<PartLetter>, now: Now) -> Result<Turn, StoreError> {
        // Before anything is opened: a topic that is made again under the name may have its own directory there by now.
        if letters.iter().any(|letter| matches!(letter, PartLetter::Drop)) {
            self.drop_files();
        }
        let (letters, noted) = self.keep(letters);
        if noted && letters.is_empty() {
            return Ok(Turn::default());
        }
        self.open(now)?;
        let asked = debts(&letters);
        let (letters, paying) = self.pay(letters, now)?;
        let mut turn = self.turn_open(letters, now)?;
        turn.at_once.splice(0..0, paying);
        self.unpaid.retain(|debt| !asked.contains(debt));
        self.unpaid.extend(failed(&turn.at_once));
        Ok(turn)
    }

    /// Notes how the log is to be kept where there is no owner to tell, and gives the other letters: a partition is not
    /// opened for that. True if something was noted.
    fn keep(&mut self, letters: Vec<PartLetter>) -> (Vec<PartLetter>, bool) {
        let source = match &mut self.owned {
            Owned::Unloaded(source) | Owned::Damaged(_, source) => source,
            Owned::Loaded(_) | Owned::Gone => return (letters, false),
        };
        let mut noted = false;
        let mut others = Vec::with_capacity(letters.len());
        for letter in letters {
            if let PartLetter::Keep(keeping) = &letter {
                source.keep(*keeping);
                noted = true;
            } else {
                others.push(letter);
            }
        }
        (others, noted)
    }

    /// Writes what a start had no room for. Until that is done whoever wants to write is told to ask again; gives the
    /// other letters, and what is to be posted.
    fn pay(&mut self, letters: Vec<PartLetter>, now: Now) -> Result<(Vec<PartLetter>, Vec<Post>), StoreError> {
        if self.owes.is_empty() {
            return Ok((letters, Vec::new()));
        }
        let mut posts = Vec::new();
        match &mut self.owned {
            Owned::Loaded(owner) => {
                let turn = owner.turn_to_disk(vec![PartLetter::Mark(self.owes.clone())], now)?;
                match turn.damaged {
                    Some(why) => self.quarantine(why, now),
                    None if marked(&turn.at_once) == Marked::Written => {
                        owner.show();
                        self.owes.clear();
                        tracing::info!(part = self.part.0, "the markers that a start had no room for are written");
                    }
                    None => {}
                }
                posts = turn.at_once;
            }
            Owned::Unloaded(_) => {}
            Owned::Damaged(..) | Owned::Gone => self.owes.clear(),
        }
        if self.owes.is_empty() {
            return Ok((letters, posts));
        }
        // The ledger keeps its own account of what it asked for; what was tried here of its own accord is not its concern.
        posts.clear();
        let (writing, others): (Vec<_>, Vec<_>) = letters.into_iter().partition(|letter| {
            matches!(
                letter,
                PartLetter::Append(_)
                    | PartLetter::Mark(_)
                    | PartLetter::AdminMark { .. }
                    | PartLetter::Describe(_)
                    | PartLetter::Close
            )
        });
        posts.extend(writing.into_iter().filter_map(|letter| answer_unopened(self.part, letter)));
        Ok((others, posts))
    }

    fn turn_open(&mut self, letters: Vec<PartLetter>, now: Now) -> Result<Turn, StoreError> {
        let part = self.part;
        let answer: fn(PartId, PartLetter) -> Option<Post> = match &mut self.owned {
            Owned::Loaded(owner) => {
                owner.set_unpaid(!self.unpaid.is_empty());
                let turn = owner.turn(letters, now)?;
                if let Some(why) = &turn.damaged {
                    self.quarantine(why.clone(), now);
                }
                return Ok(turn);
            }
            Owned::Damaged(..) => answer_damaged,
            Owned::Unloaded(_) => answer_unopened,
            Owned::Gone => answer_gone,
        };
        let at_once = letters.into_iter().filter_map(|letter| answer(part, letter)).collect();
        Ok(Turn { at_once, ..Turn::default() })
    }

    fn open(&mut self, now: Now) -> Result<(), StoreError> {
        let Owned::Unloaded(source) = &self.owned else { return Ok(()) };
        let (source, shared) = ((**source).clone(), Arc::clone(&self.shared));
        match PartitionOwner::load(self.part, source, self.settings.clone(), shared, now) {
            Ok(owner) => {
                self.compare(&owner.open_transactions());
                if self.owes.is_empty() {
                    owner.show();
                }
                self.owned = Owned::Loaded(Box::new(owner));
            }
            Err(StoreError::Damaged(why)) => self.quarantine(why, now),
            Err(StoreError::Full(why)) => tracing::warn!(part = self.part.0, why, "partition not opened: no space"),
            Err(error @ StoreError::Broken(_)) => return Err(error),
        }
        Ok(())
    }

    /// The partition's files are not what they should be. It takes nothing any more, and is read up to the damage only;
    /// everything else runs. The files stay as they are: another start after they were put right serves them again.
    fn quarantine(&mut self, why: String, now: Now) {
        self.owes.clear();
        let (source, synced) = match std::mem::replace(&mut self.owned, Owned::Gone) {
            Owned::Unloaded(source) | Owned::Damaged(_, source) => (source, None),
            Owned::Loaded(owner) => {
                // A sync that came back a moment ago may have shown more than its lane says yet.
                let synced = Offset::try_from(self.shared.lane.is_at()).unwrap_or(0);
                (Box::new(owner.into_source()), Some(synced.max(self.shared.published().watermark)))
            }
            Owned::Gone => return,
        };
        let (view, reader) = salvage(&source, &self.settings, synced, now);
        self.shared.show_salvaged(view, reader);
        let readable = match view.watermark {
            ..0 => "nothing of it is served".to_owned(),
            end => format!("it is served below offset {end}"),
        };
        tracing::error!(part = self.part.0, why, "partition damaged, appends are refused: {readable}");
        self.owned = Owned::Damaged(format!("{why}; {readable}"), source);
    }

    /// Drops a deleted topic's files, and only that topic's: its name may be another's by now. Readers that still hold them finish with what they have.
    fn drop_files(&mut self) {
        let source = match std::mem::replace(&mut self.owned, Owned::Gone) {
            Owned::Unloaded(source) | Owned::Damaged(_, source) => Some(*source),
            Owned::Loaded(owner) => Some(owner.into_source()),
            Owned::Gone => None,
        };
        self.shared.publish(Published::not(Availability::Gone));
        if let Some(source) = source
            && let Err(error) = delete_dir_of(&*source.disk, &source.dir, source.topic.id)
        {
            tracing::warn!(part = self.part.0, %error, "files of a deleted partition left behind");
        }
    }
}

/// The markers that letters ask for.
fn debts(letters: &[PartLetter]) -> BTreeSet<u64> {
    let orders =
        letters.iter().filter_map(|letter| if let PartLetter::Mark(orders) = letter { Some(orders) } else { None });
    orders.flatten().map(|(debt, _)| *debt).collect()
}

/// Those of them that are to be asked for again.
fn failed(posts: &[Post]) -> impl Iterator<Item = u64> {
    let failed = posts.iter().filter_map(|post| {
        let Post::Ledger(LedgerLetter::Marked(_, debts, MarkResult::Failed(_))) = post else { return None };
        Some(debts)
    });
    failed.flatten().copied()
}

/// What became of markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marked {
    /// They are on disk.
    Written,
    /// There was no room for them.
    NoRoom,
}

/// What a turn that wrote markers says of them.
pub(crate) fn marked(posts: &[Post]) -> Marked {
    let failed = |post: &Post| {
        matches!(post, Post::Ledger(LedgerLetter::Marked(_, _, MarkResult::Failed(_) | MarkResult::Parked)))
    };
    if posts.iter().any(failed) { Marked::NoRoom } else { Marked::Written }
}

/// What is said for a partition whose topic was deleted: it counts as sealed and owes no marker.
pub(crate) fn answer_gone(part: PartId, letter: PartLetter) -> Option<Post> {
    answer(part, letter, (Refusal::UnknownTopicOrPartition, SealState::Gone, MarkResult::Gone))
}

/// There was no room to open the partition. Nothing of a transaction that is open now can be in it, for it would be
/// open; a marker is asked for again.
pub(super) fn answer_unopened(part: PartId, letter: PartLetter) -> Option<Post> {
    let refusal = Refusal::KafkaStorageError;
    answer(part, letter, (refusal, SealState::Durable(0), MarkResult::Failed(refusal)))
}

/// A damaged partition takes nothing. It counts as sealed, with everything it may hold below: nobody reads it.
pub(super) fn answer_damaged(part: PartId, letter: PartLetter) -> Option<Post> {
    answer(part, letter, (Refusal::KafkaStorageError, SEALED_DAMAGED, MarkResult::Parked))
}

fn answer(
    part: PartId,
    letter: PartLetter,
    (refusal, state, result): (Refusal, SealState, MarkResult),
) -> Option<Post> {
    let refused = Answer::Refused(refusal);
    match letter {
        PartLetter::Append(append) => append.to.map(|to| Post::Answer(to, refused)),
        PartLetter::Describe(to) | PartLetter::DeleteRecords { to, .. } | PartLetter::AdminMark { to, .. } => {
            Some(Post::Answer(to, refused))
        }
        PartLetter::Trim(trim) => trim.to.map(|to| Post::Answer(to, refused)),
        PartLetter::LogStartStored { to, .. } | PartLetter::LogStartRefused { to } => {
            to.map(|to| Post::Answer(to, refused))
        }
        PartLetter::Seal { id, number, round, .. } => {
            Some(sealed(Sealed { id, number, round, part, state: SealState::Asked }, state))
        }
        PartLetter::Mark(orders) => {
            let debts = orders.into_iter().map(|(debt, _)| debt).collect();
            Some(Post::Ledger(LedgerLetter::Marked(part, debts, result)))
        }
        PartLetter::Grant(_)
        | PartLetter::Unseal { .. }
        | PartLetter::Keep(_)
        | PartLetter::Retain
        | PartLetter::Unlink
        | PartLetter::Load
        | PartLetter::Drop
        | PartLetter::Close => None,
    }
}

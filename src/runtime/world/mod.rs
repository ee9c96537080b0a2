//! The owners without threads: the very machines that ship, driven by hand, one step at a time, in any order.
//!
//! Nothing happens unless it is called for: a turn of the ledger, a turn of a partition, a flush, a sync, time. So a
//! test can stop the world between any two steps, look, cut the power, and go on; what it proves holds for the shell of
//! threads too, which only carries and waits.

pub(crate) mod ask;
pub(crate) mod build;
pub(crate) mod store;

#[cfg(test)]
mod damaged;
#[cfg(test)]
mod debts;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod full_disk;
#[cfg(test)]
mod fullness;
#[cfg(test)]
mod gathering;
pub(crate) mod invariants;
#[cfg(test)]
mod leftovers;
#[cfg(test)]
mod markers;
#[cfg(test)]
mod ordering;
#[cfg(test)]
mod readers;
#[cfg(test)]
mod restarts;
#[cfg(test)]
mod retention;
#[cfg(test)]
mod tools;
#[cfg(test)]
mod trims;
#[cfg(test)]
mod waiting;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use crate::engine::catalog::Catalog;
use crate::engine::{Now, Offset, PartId, ReplyTo};
use crate::runtime::ledger::LedgerOwner;
use crate::runtime::partition::place::{Place, answer_gone};
use crate::runtime::partition::published::{Published, Shared};
use crate::runtime::partition::{PartitionOwner, Settings, Syncing};
use crate::runtime::post::{Answer, CatalogNews, LedgerLetter, PartLetter, Post};
use crate::store::mem_disk::{Cut, MemDisk};
use crate::store::meta::WalFile;
use crate::store::tickets::{Lane, Ticket};
use build::How;
use store::FakeDb;

/// Most turns a world may take to come to rest: more is a world that spins.
const TURNS_MAX: usize = 5_000;

/// Where the ledger's rows are.
pub(crate) enum Db {
    /// Rows in memory.
    Fake(FakeDb),
    /// SQLite on a directory of its own, which no power cut hits.
    #[cfg(test)]
    Real { root: Arc<tempfile::TempDir>, wal: WalFile },
    /// SQLite on the world's own disk; `mount` gives the path under which SQLite finds a disk.
    Simulated { mount: fn(&MemDisk) -> PathBuf, wal: Option<WalFile> },
}

/// A partition and what is on its way.
pub(crate) struct Part {
    pub(crate) place: Place,
    pub(crate) shared: Arc<Shared>,
    pub(crate) mail: VecDeque<PartLetter>,
    pub(crate) sync: Option<Syncing>,
}

/// The broker behind its edges.
pub(crate) struct World {
    pub(crate) now: Now,
    pub(crate) how: How,
    pub(crate) incarnation: i32,
    pub(crate) disk: MemDisk,
    pub(crate) db: Db,
    pub(crate) owner: Option<LedgerOwner>,
    pub(crate) rows: Arc<Lane<Post>>,
    pub(crate) written: u64,
    pub(crate) part_settings: Settings,
    pub(crate) parts: BTreeMap<PartId, Part>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) inbox: VecDeque<LedgerLetter>,
    pub(crate) asked: u64,
    pub(crate) answers: BTreeMap<ReplyTo, Answer>,
    /// What happened, in words, unless nobody wants to know.
    pub(crate) trace: Vec<String>,
    pub(crate) tracing: bool,
    pub(crate) broken: Option<String>,
    pub(crate) ledger_turns: usize,
    /// Turns of the ledger in a row that left nothing to read and something overdue.
    pub(crate) overdue_turns: usize,
}

impl World {
    pub(crate) fn note(&mut self, line: impl FnOnce() -> String) {
        if self.tracing {
            let line = line();
            self.trace.push(line);
        }
    }

    /// Whether the power went off: what was going on then is not told to anybody.
    pub(crate) fn lost_power(&mut self) -> bool {
        let off = self.disk.power().is_off();
        if off && self.broken.is_none() {
            self.breaks("the power is off");
        }
        off
    }

    // ---- steps ----

    /// The ledger takes everything in its inbox.
    pub(crate) fn turn_ledger(&mut self) {
        self.turn_ledger_with(usize::MAX);
    }

    /// The ledger takes the first letters of its inbox.
    pub(crate) fn turn_ledger_with(&mut self, letters: usize) {
        if self.broken.is_some() {
            return;
        }
        self.ledger_turns += 1;
        let count = letters.min(self.inbox.len());
        let letters: Vec<LedgerLetter> = self.inbox.drain(..count).collect();
        let owner = self.owner.as_mut().expect("an owner");
        let turn = match owner.turn(letters, self.now) {
            Ok(turn) => turn,
            Err(error) => return self.breaks(&error.to_string()),
        };
        if self.lost_power() {
            return;
        }
        if turn.upto > self.written {
            self.note(|| format!("commit {}", turn.upto));
        }
        self.written = turn.upto;
        for post in turn.held {
            if let Some(post) = self.rows.wait(turn.upto, &Ticket::new(post, 1)) {
                self.deliver(post);
            }
        }
        turn.at_once.into_iter().for_each(|post| self.deliver(post));
    }

    /// Everything the ledger has committed reaches the disk.
    pub(crate) fn flush_rows(&mut self) {
        if self.broken.is_some() {
            return;
        }
        if let Err(error) = self.sync_rows() {
            return self.breaks(&error.to_string());
        }
        if self.lost_power() {
            return;
        }
        let written = self.written;
        self.note(|| format!("flush {written}"));
        self.rows.reached(self.written).into_iter().for_each(|post| self.deliver(post));
    }

    /// A partition takes everything in its mailbox.
    pub(crate) fn turn_part(&mut self, part: PartId) {
        if self.broken.is_some() {
            return;
        }
        let now = self.now;
        let Some(entry) = self.parts.get_mut(&part) else { return };
        let letters: Vec<PartLetter> = entry.mail.drain(..).collect();
        let turn = match entry.place.turn(letters, now) {
            Ok(turn) => turn,
            Err(error) => return self.breaks(&error.to_string()),
        };
        if self.lost_power() {
            return;
        }
        self.note(|| format!("turn {}", part.0));
        turn.at_once.into_iter().for_each(|post| self.deliver(post));
        if let Some(entry) = self.parts.get_mut(&part)
            && let Some(syncing) = turn.sync.and_then(|syncing| entry.shared.put_in_line(syncing))
        {
            entry.sync = Some(syncing);
        }
    }

    /// What a partition wrote reaches the disk.
    pub(crate) fn sync_part(&mut self, part: PartId) {
        if self.broken.is_some() {
            return;
        }
        let Some(entry) = self.parts.get_mut(&part) else { return };
        let Some(syncing) = entry.sync.take() else { return };
        if let Err(error) = syncing.run() {
            return self.breaks(&error.to_string());
        }
        if self.disk.power().is_off() {
            return self.breaks("the power is off");
        }
        let shared = Arc::clone(&entry.shared);
        let posts = shared.synced(syncing.end(), syncing.then);
        self.note(|| format!("sync {} published {:?}", part.0, shared.published()));
        posts.into_iter().for_each(|post| self.deliver(post));
        let next = shared.next_sync();
        if let Some(entry) = self.parts.get_mut(&part) {
            entry.sync = next;
        }
    }

    /// The ledger's work for quiet moments.
    pub(crate) fn tidy(&mut self) {
        let Some(owner) = self.owner.as_mut().filter(|_| self.broken.is_none()) else { return };
        if let Err(error) = owner.tidy(true) {
            return self.breaks(&error.to_string());
        }
        self.lost_power();
    }

    /// Time passes; nobody has noticed yet.
    pub(crate) fn advance(&mut self, ms: i64) {
        self.now = Now { mono_ms: self.now.mono_ms + ms, wall_ms: self.now.wall_ms + ms };
    }

    // ---- many steps ----

    /// Everything that can happen now happens.
    pub(crate) fn run_to_rest(&mut self) {
        for _ in 0..TURNS_MAX {
            if !self.step_anything() {
                return;
            }
        }
        panic!("the world does not come to rest: {:#?}", self.trace.iter().rev().take(20).collect::<Vec<_>>());
    }

    pub(crate) fn step_anything(&mut self) -> bool {
        if self.broken.is_some() {
            return false;
        }
        if !self.inbox.is_empty() || self.is_due() {
            self.turn_ledger();
            self.check_no_spin();
            return true;
        }
        if self.rows.is_at() < self.written {
            self.flush_rows();
            return true;
        }
        if let Some(part) = self.find(|entry| !entry.mail.is_empty()) {
            self.turn_part(part);
            return true;
        }
        if let Some(part) = self.find(|entry| entry.sync.is_some()) {
            self.sync_part(part);
            return true;
        }
        false
    }

    /// A turn may find that something else is overdue now. One after the other that does is a world that spins.
    pub(crate) fn check_no_spin(&mut self) {
        if !self.inbox.is_empty() || !self.is_due() {
            self.overdue_turns = 0;
            return;
        }
        self.overdue_turns += 1;
        let deadline = self.owner.as_ref().and_then(LedgerOwner::deadline_mono_ms);
        assert!(self.overdue_turns < 8, "the ledger spins: now {}, deadline {deadline:?}", self.now.mono_ms);
    }

    pub(crate) fn is_due(&self) -> bool {
        let deadline = self.owner.as_ref().and_then(LedgerOwner::deadline_mono_ms);
        deadline.is_some_and(|at| at <= self.now.mono_ms)
    }

    /// Time passes, and at every moment at which something is due it happens.
    pub(crate) fn run_for(&mut self, ms: i64) {
        let end = self.now.mono_ms + ms;
        loop {
            self.run_to_rest();
            let next = self.owner.as_ref().and_then(LedgerOwner::deadline_mono_ms).unwrap_or(i64::MAX).min(end);
            if self.broken.is_some() || self.now.mono_ms >= end {
                return;
            }
            self.advance((next - self.now.mono_ms).max(1));
        }
    }

    pub(crate) fn find(&self, wanted: impl Fn(&Part) -> bool) -> Option<PartId> {
        self.parts.iter().find(|(_, entry)| wanted(entry)).map(|(part, _)| *part)
    }

    // ---- carrying ----

    pub(crate) fn deliver(&mut self, post: Post) {
        self.note(|| shown(&post));
        match post {
            Post::Answer(to, answer) => {
                let twice = self.answers.insert(to, answer);
                assert!(twice.is_none(), "{to:?} is answered twice: {twice:?}, {:?}", self.answers.get(&to));
            }
            Post::Ledger(letter) => self.inbox.push_back(letter),
            Post::Part(part, letter) => match self.parts.get_mut(&part) {
                Some(entry) => entry.mail.push_back(letter),
                None => answer_gone(part, letter).into_iter().for_each(|post| self.deliver(post)),
            },
            Post::Catalog(news) => self.take_news(news),
        }
    }

    pub(crate) fn take_news(&mut self, news: CatalogNews) {
        for (part, row) in &news.created {
            let shared = Arc::new(Shared::unloaded());
            let source = build::source(&self.disk, &self.how, &news.catalog, row).expect("its topic is in the news");
            let place = Place::unloaded(*part, source, (self.part_settings.clone(), Arc::clone(&shared)));
            self.parts.insert(*part, Part { place, shared, mail: VecDeque::new(), sync: None });
        }
        for part in &news.deleted {
            let Some(mut entry) = self.parts.remove(part) else { continue };
            entry.mail.push_back(PartLetter::Drop);
            let turn = entry.place.turn(entry.mail.drain(..).collect(), self.now).expect("dropped");
            turn.at_once.into_iter().for_each(|post| self.deliver(post));
        }
        self.catalog = news.catalog;
        let told = self.catalog.iter().flat_map(|topic| topic.parts.iter());
        let untold: Vec<&PartId> = told.filter(|part| !self.parts.contains_key(part)).collect();
        assert!(untold.is_empty(), "a topic is seen whose partitions nobody was told of: {untold:?}");
    }

    pub(crate) fn breaks(&mut self, why: &str) {
        self.note(|| format!("broken: {why}"));
        self.broken = Some(why.to_owned());
    }

    // ---- looking ----

    pub(crate) fn published(&self, part: PartId) -> Published {
        self.parts.get(&part).expect("a partition").shared.published()
    }

    pub(crate) fn watermark(&self, part: PartId) -> Offset {
        self.published(part).watermark
    }

    pub(crate) fn last_stable(&self, part: PartId) -> Offset {
        self.published(part).last_stable
    }

    /// The log's end as its owner knows it; what is published if it was not opened yet.
    pub(crate) fn log_end(&self, part: PartId) -> Offset {
        let Some(entry) = self.parts.get(&part) else { return 0 };
        entry.place.owner().map_or_else(|| entry.shared.published().watermark, PartitionOwner::log_end)
    }

    pub(crate) fn log_dir(&self, part: PartId) -> PathBuf {
        let (topic, index) = self.catalog.part(part).expect("a partition");
        PathBuf::from(format!("{}-{index}", topic.name))
    }

    /// Place in the trace of the first happening that begins with `front`.
    pub(crate) fn when(&self, front: &str) -> usize {
        let found = self.trace.iter().position(|line| line.starts_with(front));
        found.unwrap_or_else(|| panic!("{front} did not happen: {:#?}", self.trace))
    }

    /// Whether something that begins with `front` has happened.
    pub(crate) fn happened(&self, front: &str) -> bool {
        self.trace.iter().any(|line| line.starts_with(front))
    }

    /// The end of the trace.
    pub(crate) fn tail(&self) -> &[String] {
        &self.trace[self.trace.len().saturating_sub(60)..]
    }

    // ---- ends ----

    /// The process is killed and starts again: what was written is there, and a power cut may still take it.
    pub(crate) fn kill_and_restart(&mut self) {
        let disk = self.disk.killed();
        self.restart(disk, usize::MAX);
    }

    /// The power goes: of what was not synced `cut` decides; of the commits beyond the flushed ones `extra` are kept.
    pub(crate) fn cut_and_restart(&mut self, cut: Cut, extra: usize) {
        let disk = self.disk.crash(cut);
        self.restart(disk, extra);
    }

    pub(crate) fn restart(&mut self, disk: MemDisk, extra: usize) {
        // Whatever the old process's handles still do is done to the disk of the past.
        self.owner = None;
        self.parts.clear();
        self.disk = disk;
        self.db = match &self.db {
            Db::Fake(db) => {
                let (least, most) = db.may_keep();
                Db::Fake(db.after_cut(least.saturating_add(extra).min(most)))
            }
            #[cfg(test)]
            Db::Real { root, wal } => Db::Real { root: Arc::clone(root), wal: wal.clone() },
            Db::Simulated { mount, .. } => Db::Simulated { mount: *mount, wal: None },
        };
        self.note(|| "restart".to_owned());
        self.start(false);
    }
}

fn shown(post: &Post) -> String {
    match post {
        Post::Answer(to, answer) => format!("answer {} {answer:?}", to.0),
        Post::Part(part, PartLetter::Grant(grant)) => format!("grant {} to {} row {}", grant.txn_no, part.0, grant.row),
        Post::Part(part, PartLetter::Seal { number, .. }) => format!("seal {number} at {}", part.0),
        Post::Part(part, PartLetter::Unseal { number, .. }) => format!("unseal {number} at {}", part.0),
        Post::Part(part, PartLetter::Mark(orders)) => format!("mark at {} {orders:?}", part.0),
        Post::Part(part, letter) => format!("to {} {letter:?}", part.0),
        Post::Ledger(LedgerLetter::Sealed(sealed)) => format!("sealed at {} {:?}", sealed.part.0, sealed.state),
        Post::Ledger(LedgerLetter::Marked(part, debts, result)) => format!("marked at {} {debts:?} {result:?}", part.0),
        Post::Ledger(letter) => format!("to ledger {letter:?}"),
        Post::Catalog(_) => "catalog".to_owned(),
    }
}

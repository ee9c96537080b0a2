//! The thread around the ledger's owner, and the one that flushes its commits. Both only carry and wait.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::{LedgerOwner, Needs};
use crate::clock::Clock;
use crate::config::Durability;
use crate::metrics::SyncedFile;
use crate::runtime::post::{LedgerLetter, Post};
use crate::runtime::router::Router;
use crate::store::StoreError;
use crate::store::meta::{LedgerStore, WalFile};
use crate::store::tickets::{Lane, Ticket};

/// Most letters of one turn: bounds how long the first of them waits for the last.
const LETTERS_MAX: usize = 512;
/// Silence after which quiet work is done, in milliseconds.
const IDLE_MS: u64 = 200;

/// How far commits are written, for the thread that flushes them.
#[derive(Default)]
pub struct Written {
    state: Mutex<Commits>,
    changed: Condvar,
}

#[derive(Default)]
struct Commits {
    /// The last one written.
    upto: u64,
    /// What the most demanding of those since the last flush needs.
    needs: Needs,
    closed: bool,
}

impl Written {
    fn set(&self, upto: u64, needs: Needs) {
        let mut state = self.state.lock();
        state.needs = state.needs.max(needs);
        if state.upto < upto {
            state.upto = upto;
            self.changed.notify_one();
        }
    }

    /// No more commits: the flushing thread comes back when all are flushed.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_one();
    }

    fn wait_beyond(&self, flushed: u64) -> Option<(u64, Needs)> {
        let mut state = self.state.lock();
        while state.upto <= flushed {
            if state.closed {
                return None;
            }
            self.changed.wait(&mut state);
        }
        Some((state.upto, std::mem::take(&mut state.needs)))
    }
}

/// What the two threads share.
#[derive(Clone)]
pub struct Flushing {
    /// How far commits are on disk, and who waits for that.
    pub rows: Arc<Lane<Post>>,
    /// How far they are written.
    pub written: Arc<Written>,
}

/// Drives the owner until it is told to stop. Gives the store back for a clean stop; `None` if storage failed.
pub fn drive(
    mut owner: LedgerOwner,
    inbox: &Receiver<LedgerLetter>,
    flushing: &Flushing,
    clock: &Clock,
    router: &Router,
) -> Option<Box<dyn LedgerStore>> {
    loop {
        let (letters, idle) = gather(&owner, inbox, clock)?;
        let stop = letters.iter().any(|letter| matches!(letter, LedgerLetter::Stop));
        if let Err(error) = turn(&mut owner, letters, idle, flushing, (clock, router)) {
            router.broken(&error);
            return None;
        }
        if stop {
            return Some(owner.into_store());
        }
    }
}

fn turn(
    owner: &mut LedgerOwner,
    letters: Vec<LedgerLetter>,
    idle: bool,
    flushing: &Flushing,
    (clock, router): (&Clock, &Router),
) -> Result<(), StoreError> {
    let turn = owner.turn(letters, clock.now())?;
    // Held posts are in line before the flush can be reported, so that none is forgotten.
    for post in turn.held {
        if let Some(post) = flushing.rows.wait(turn.upto, &Ticket::new(post, 1)) {
            router.deliver(post);
        }
    }
    flushing.written.set(turn.upto, turn.needs);
    turn.at_once.into_iter().for_each(|post| router.deliver(post));
    router.set_refusing(owner.refuses());
    owner.tidy(idle)
}

/// Waits for a letter or a deadline, then takes what else has come. `None` when nobody can send any more.
fn gather(owner: &LedgerOwner, inbox: &Receiver<LedgerLetter>, clock: &Clock) -> Option<(Vec<LedgerLetter>, bool)> {
    let deadline = owner.deadline_mono_ms().and_then(|at| clock.sleep_until(at));
    let idle = Duration::from_millis(IDLE_MS);
    let wait = deadline.map_or(idle, |until| until.min(idle));
    let mut letters = Vec::new();
    let quiet = match inbox.recv_timeout(wait) {
        Ok(letter) => {
            letters.push(letter);
            false
        }
        Err(RecvTimeoutError::Timeout) => true,
        Err(RecvTimeoutError::Disconnected) => return None,
    };
    while letters.len() < LETTERS_MAX
        && let Ok(letter) = inbox.try_recv()
    {
        letters.push(letter);
    }
    Some((letters, quiet && wait == idle))
}

/// Flushes commits until told to stop, each flush taking along what was written meanwhile; then lets go what waited.
/// Under `durability = "relaxed"` only what needs the disk waits for it.
pub fn flush(wal: &WalFile, durability: Durability, flushing: &Flushing, (clock, router): (&Clock, &Router)) {
    let mut flushed = flushing.rows.is_at();
    while let Some((upto, needs)) = flushing.written.wait_beyond(flushed) {
        let began = clock.exact();
        let syncs = durability == Durability::Strict || needs == Needs::Disk;
        if syncs && let Err(error) = wal.sync() {
            router.broken(&error);
            return;
        }
        router.metrics().synced(SyncedFile::Ledger, clock.exact().saturating_sub(began));
        flushed = upto;
        flushing.rows.reach(upto, |post| router.deliver(post));
    }
}

//! Who waits for an answer, by number.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::engine::ReplyTo;
use crate::runtime::post::Answer;

const SHELVES: usize = 16;

/// Waiting requests. A number is given once; an answer to one that is gone is dropped, which is what a client that
/// hung up deserves.
pub struct Mailroom {
    next: AtomicU64,
    shelves: [Mutex<BTreeMap<u64, oneshot::Sender<Answer>>>; SHELVES],
}

impl Default for Mailroom {
    fn default() -> Self {
        Self { next: AtomicU64::new(1), shelves: std::array::from_fn(|_| Mutex::new(BTreeMap::new())) }
    }
}

/// A place in the mailroom; given up when dropped.
pub struct Waiting<'a> {
    room: &'a Mailroom,
    /// The number under which the answer is posted.
    pub to: ReplyTo,
    answer: oneshot::Receiver<Answer>,
}

impl Mailroom {
    /// A new place.
    pub fn wait(&self) -> Waiting<'_> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        if let Some(shelf) = self.shelf(number) {
            shelf.lock().insert(number, sender);
        }
        Waiting { room: self, to: ReplyTo(number), answer }
    }

    /// Hands an answer over.
    pub fn deliver(&self, to: ReplyTo, answer: Answer) {
        let waiting = self.shelf(to.0).and_then(|shelf| shelf.lock().remove(&to.0));
        if let Some(sender) = waiting {
            // A receiver that is gone hung up: nobody is left to be told.
            drop(sender.send(answer));
        }
    }

    fn shelf(&self, number: u64) -> Option<&Mutex<BTreeMap<u64, oneshot::Sender<Answer>>>> {
        let shelves = u64::try_from(SHELVES).unwrap_or(1);
        self.shelves.get(usize::try_from(number % shelves).unwrap_or(0))
    }
}

impl Waiting<'_> {
    /// The answer; `None` when the owner is gone, because the process stops.
    pub async fn answer(mut self) -> Option<Answer> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(shelf) = self.room.shelf(self.to.0) {
            shelf.lock().remove(&self.to.0);
        }
    }
}

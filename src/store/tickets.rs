//! Who waits for which bytes to be on disk.
//!
//! A *lane* is one stream of writes that reaches the disk in order: one partition's log, or `meta.db`'s write-ahead
//! log. A *ticket* waits for places in one or more lanes and gives up what it carries when the last one is reached,
//! on whatever thread that happens: nobody is asked again, and nothing carried can leave earlier.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

/// Something to be sent once its bytes are on disk.
pub struct Ticket<P> {
    left: AtomicU32,
    carried: Mutex<Option<P>>,
}

impl<P> Ticket<P> {
    /// A ticket that waits in `lanes` lanes.
    #[must_use]
    pub fn new(carried: P, lanes: u32) -> Arc<Self> {
        Arc::new(Self { left: AtomicU32::new(lanes), carried: Mutex::new(Some(carried)) })
    }

    /// One of its lanes got there. The last one has what is carried.
    fn count_down(&self) -> Option<P> {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 { self.carried.lock().take() } else { None }
    }
}

/// How far one stream of writes is on disk, and who waits for more of it.
pub struct Lane<P> {
    inner: Mutex<Waiters<P>>,
}

struct Waiters<P> {
    reached: u64,
    waiting: BTreeMap<u64, Vec<Arc<Ticket<P>>>>,
}

impl<P> Lane<P> {
    /// A lane that is on disk up to `reached`.
    #[must_use]
    pub fn new(reached: u64) -> Self {
        Self { inner: Mutex::new(Waiters { reached, waiting: BTreeMap::new() }) }
    }

    /// Waits for `upto`. If that is on disk already and nothing else is waited for, gives back what is carried.
    pub fn wait(&self, upto: u64, ticket: &Arc<Ticket<P>>) -> Option<P> {
        let mut inner = self.inner.lock();
        if inner.reached >= upto {
            drop(inner);
            return ticket.count_down();
        }
        inner.waiting.entry(upto).or_default().push(Arc::clone(ticket));
        None
    }

    /// Everything up to `upto` is on disk: gives what may leave now, in the order it was put in.
    pub fn reached(&self, upto: u64) -> Vec<P> {
        let mut inner = self.inner.lock();
        inner.reached = inner.reached.max(upto);
        let later = inner.waiting.split_off(&upto.saturating_add(1));
        let done = std::mem::replace(&mut inner.waiting, later);
        drop(inner);
        done.into_values().flatten().filter_map(|ticket| ticket.count_down()).collect()
    }

    /// As [`Lane::reached`], for a lane in which one thread waits while another hands out: what comes to wait meanwhile
    /// leaves behind what came before, so that no answer overtakes the news it rests on.
    pub fn reach(&self, upto: u64, mut leave: impl FnMut(P)) {
        while let Some(done) = self.done(upto) {
            done.into_values().flatten().filter_map(|ticket| ticket.count_down()).for_each(&mut leave);
        }
    }

    /// Who may leave; the lane itself moves when that is nobody any more.
    fn done(&self, upto: u64) -> Option<BTreeMap<u64, Vec<Arc<Ticket<P>>>>> {
        let mut inner = self.inner.lock();
        let later = inner.waiting.split_off(&upto.saturating_add(1));
        let done = std::mem::replace(&mut inner.waiting, later);
        if done.is_empty() {
            inner.reached = inner.reached.max(upto);
            return None;
        }
        Some(done)
    }

    /// How far the lane is.
    #[must_use]
    pub fn is_at(&self) -> u64 {
        self.inner.lock().reached
    }

    /// Gives up everyone who waits: what they wait for will never come (the log was cut back). What was carried is
    /// handed back to be answered with a refusal.
    pub fn give_up(&self) -> Vec<P> {
        let waiting = std::mem::take(&mut self.inner.lock().waiting);
        waiting.into_values().flatten().filter_map(|ticket| ticket.carried.lock().take()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_leaves_with_its_last_lane_and_never_before() {
        let (log, rows) = (Lane::new(10), Lane::new(3));
        let both = Ticket::new("both", 2);
        assert_eq!(log.wait(12, &both), None);
        assert_eq!(rows.wait(4, &both), None);
        assert_eq!(log.reached(11), Vec::<&str>::new());
        assert_eq!(log.reached(12), Vec::<&str>::new(), "the row is not on disk yet");
        assert_eq!(rows.reached(4), ["both"]);
    }

    #[test]
    fn what_is_on_disk_already_is_not_waited_for() {
        let lane = Lane::new(7);
        assert_eq!(lane.wait(7, &Ticket::new(1, 1)), Some(1));
        assert_eq!(lane.wait(8, &Ticket::new(2, 1)), None);
        assert_eq!(lane.reached(100), [2]);
        assert_eq!(lane.is_at(), 100);
    }

    #[test]
    fn order_within_a_lane_is_kept() {
        let lane = Lane::new(0);
        for n in [1_u64, 2, 3] {
            assert_eq!(lane.wait(5, &Ticket::new(n, 1)), None);
        }
        assert_eq!(lane.wait(4, &Ticket::new(0, 1)), None);
        assert_eq!(lane.reached(5), [0, 1, 2, 3]);
    }

    /// Else whoever is told that a topic is there already may be told before anyone can see that topic.
    #[test]
    fn nobody_overtakes_those_who_are_leaving() {
        let lane = Lane::new(0);
        assert_eq!(lane.wait(5, &Ticket::new("news", 1)), None);
        assert_eq!(lane.wait(6, &Ticket::new("later", 1)), None);
        let mut left = Vec::new();
        lane.reach(5, |post| {
            if post == "news" {
                assert_eq!(lane.wait(5, &Ticket::new("answer", 1)), None, "the news is on its way");
            }
            left.push(post);
        });
        assert_eq!(left, ["news", "answer"]);
        assert_eq!(lane.is_at(), 5);
        assert_eq!(lane.wait(5, &Ticket::new("next", 1)), Some("next"));
    }
}

//! What Kafka's rules of transactions say, asked at the wire: one table a rule, one line a row.

mod add;
mod ask;
mod back_to_back;
mod crash;
mod end;
mod exhausted;
mod failures;
mod fenced;
mod init;
mod produce;
mod reading;
mod sequences;
mod stage;
mod timeouts;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use oncelog::clock::Clock;
use oncelog::config::Config;
use oncelog::server::Parts;
use oncelog::store::faults::{Fault, Faults, FaultyDisk, Operation, Rule};

use crate::broker::TestBroker;
use crate::raw::Client;
use crate::raw::batch::{Batch, Pid};

/// A topic whose markers can be held back.
pub(crate) const HELD: &str = "held";
/// A topic whose markers never are.
pub(crate) const FREE: &str = "free";
/// Partitions of each.
pub(crate) const PARTS: i32 = 4;

/// A Fetch is given records of one segment, and the batches here are older than a segment lasts by default.
pub(crate) const ONE_SEGMENT: [(&str, &str); 1] = [("segment.ms", "9000000000000000")];

/// A broker with the two topics, and the hand on its disk.
pub(crate) struct Scene {
    pub(crate) broker: TestBroker,
    faults: Faults,
    ids: AtomicU32,
}

/// Where a transactional id stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Never initialised.
    Unknown,
    /// Owned, nothing begun.
    Empty,
    /// A transaction is open, with partition 0 of both topics and the group `group`.
    Ongoing,
    /// Ended, true for a commit; its markers are held back.
    Deciding(bool),
    /// Ended, true for a commit, and over.
    Over(bool),
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// Its owner.
    Owner,
    /// Somebody with its producer id and the epoch before.
    Lower,
    /// Somebody with its producer id and an epoch to come.
    Higher,
    /// Another producer.
    Other,
}

impl Claim {
    fn of(self, owner: Pid) -> Pid {
        match self {
            Self::Owner => owner,
            Self::Lower => Pid { epoch: owner.epoch - 1, ..owner },
            Self::Higher => Pid { epoch: owner.epoch + 1, ..owner },
            Self::Other => Pid { id: owner.id + 1_000_000, ..owner },
        }
    }
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::on(|_| {}, |_| {})
    }

    /// On a clock that is moved by hand.
    pub(crate) fn by_hand() -> (Self, Clock) {
        let clock = Clock::manual(1_700_000_000_000);
        let own = clock.clone();
        (Self::on(|_| {}, move |parts| parts.clock = own), clock)
    }

    pub(crate) fn on(change: impl FnOnce(&mut Config), rebuild: impl FnOnce(&mut Parts)) -> Self {
        let faults = Faults::default();
        let disk = faulty(&faults);
        let broker = TestBroker::on(change, |parts| {
            disk(parts);
            rebuild(parts);
        });
        let mut client = broker.connect();
        for topic in [HELD, FREE] {
            assert_eq!(client.create_topic_with(topic, PARTS, &ONE_SEGMENT), 0);
            // The files are there before any write of theirs can fail.
            for part in 0..PARTS {
                assert_eq!(client.produce(topic, part, None, &Batch::plain(1).values("first", 1)).code, 0);
            }
        }
        Self { broker, faults, ids: AtomicU32::new(0) }
    }

    pub(crate) fn connect(&self) -> Client {
        self.broker.connect()
    }

    /// From here on no marker of [`HELD`] can be written; nothing else can either.
    pub(crate) fn hold(&self) {
        self.faults.add(Rule::always(Operation::Write, &format!("{HELD}-"), Fault::NoSpace));
    }

    pub(crate) fn release(&self) {
        self.faults.lift();
    }

    /// A kill and a new start, on the clock of `rebuild`. Nothing is held back any more.
    pub(crate) fn crash_and_start(&mut self, rebuild: impl FnOnce(&mut Parts)) {
        self.broker.crash();
        self.release();
        let disk = faulty(&self.faults);
        self.broker.start_again(|parts| {
            disk(parts);
            rebuild(parts);
        });
    }

    /// A transactional id never used before.
    fn fresh_id(&self) -> String {
        format!("id-{}", self.ids.fetch_add(1, Ordering::Relaxed))
    }

    /// Brings `id` to stand like this. Its epoch is 1, so that there is a lower one. Markers that are to be held back
    /// must be held already.
    fn bring(&self, client: &mut Client, id: &str, standing: Standing) -> Pid {
        if standing == Standing::Unknown {
            return Pid { id: 5, epoch: 1 };
        }
        let _: Pid = client.owner(id);
        let owner = client.owner(id);
        assert_eq!(owner.epoch, 1, "T-122");
        match standing {
            Standing::Unknown | Standing::Empty => {}
            Standing::Ongoing => {
                assert_eq!(client.add_partitions(id, owner, &[(HELD, 0), (FREE, 0)]), [0, 0]);
                assert_eq!(client.add_offsets(id, owner, "group"), 0);
            }
            Standing::Deciding(commit) => {
                assert_eq!(client.add_partitions(id, owner, &[(HELD, 0), (FREE, 0)]), [0, 0]);
                assert_eq!(client.add_offsets(id, owner, "group"), 0);
                assert_eq!(client.end_txn(id, owner, commit), 51, "markers that cannot be written");
            }
            Standing::Over(commit) => {
                assert_eq!(client.add_partitions(id, owner, &[(FREE, 0)]), [0]);
                assert_eq!(client.add_offsets(id, owner, "group"), 0);
                client.end_txn_surely(id, owner, commit);
            }
        }
        owner
    }

    /// Runs `check` on every line at once, each on a connection of its own: lines share nothing but the broker.
    fn check_all<T: Sync>(&self, lines: &[T], check: impl Fn(&Self, &mut Client, &T) + Sync) {
        std::thread::scope(|scope| {
            for line in lines {
                scope.spawn(|| check(self, &mut self.connect(), line));
            }
        });
    }
}

fn faulty(faults: &Faults) -> impl FnOnce(&mut Parts) + use<> {
    let faults = faults.clone();
    move |parts| parts.wrap_disk = Box::new(move |disk| Arc::new(FaultyDisk::new(disk, faults)))
}

/// Asks until it is so. Nothing here is right by luck of timing: what must come about does, or the test fails.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let clock = Clock::system();
    while !is_so() {
        assert!(clock.now().mono_ms < 20_000, "never so: {what}");
        std::thread::yield_now();
    }
}

//! Looks after the disk's room: measures it, says when it gets low and when it is back, sets some aside.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use crate::engine::Now;
use crate::runtime::post::LedgerLetter;
use crate::runtime::retention::SweepLetter;
use crate::runtime::router::Router;
use crate::store::space::{Measured, Renewed, Room, Space, why_low};

/// Between two looks, in milliseconds. A fast disk takes less than the low mark in that time.
const LOOK_MS: i64 = 1_000;
/// Longest pause after room could not be set aside, in milliseconds: trying fills a disk that shows more room than it has.
const MOST_PAUSE_MS: i64 = 3_600_000;

/// Who looks. A plain value that a thread of its own drives, since the disk may make it wait.
pub struct RoomWatch {
    space: Arc<Space>,
    sweeps: Sender<SweepLetter>,
    next_mono_ms: i64,
    /// When room is to be set aside again, and how long the pause before was.
    renew_mono_ms: i64,
    pause_ms: i64,
    /// The room that was told of last.
    said: Room,
    /// Times the reserve had been given up at the last look.
    spent: u64,
    told: Told,
}

/// Whether it was said already that something does not work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    Failure,
}

impl RoomWatch {
    /// Looks after `space`; has what may go swept away when it gets low.
    #[must_use]
    pub fn new(space: Arc<Space>, sweeps: Sender<SweepLetter>) -> Self {
        Self {
            space,
            sweeps,
            next_mono_ms: 0,
            renew_mono_ms: 0,
            pause_ms: 0,
            said: Room::Ample,
            spent: 0,
            told: Told::Nothing,
        }
    }

    /// The first look, which sets nothing aside: that takes a while.
    pub fn look(&mut self, now: Now, router: &Router) -> i64 {
        match self.space.measure() {
            Ok(measured) => self.note(&measured, router),
            Err(error) => self.tell(&format!("the free space of the disk is not known: {error}")),
        }
        now.mono_ms
    }

    /// Looks if it is time to, and does what there is to be done; gives the moment of the next look, on the monotonic clock.
    pub fn turn(&mut self, now: Now, router: &Router) -> i64 {
        if now.mono_ms < self.next_mono_ms {
            return self.next_mono_ms;
        }
        self.next_mono_ms = now.mono_ms.saturating_add(LOOK_MS);
        self.look(now, router);
        if now.mono_ms >= self.renew_mono_ms {
            self.renew(now, router);
        }
        router.partitions.try_again(router);
        self.next_mono_ms
    }

    fn renew(&mut self, now: Now, router: &Router) {
        match self.space.renew_reserve() {
            Ok(Renewed::Made) => {
                self.pause_ms = 0;
                tracing::info!("disk space set aside for what must be stored when the disk is full");
            }
            Ok(Renewed::NotDue) => {}
            Ok(Renewed::Failed(error)) => {
                self.pause_ms = self.pause_ms.saturating_mul(2).clamp(LOOK_MS, MOST_PAUSE_MS);
                self.renew_mono_ms = now.mono_ms.saturating_add(self.pause_ms);
                self.tell(&format!("no disk space can be set aside: {error}"));
            }
            Err(error) => router.broken(&error),
        }
    }

    fn note(&mut self, measured: &Measured, router: &Router) {
        let Measured { total, free, room, marks, .. } = *measured;
        router.metrics().set_disk(total, free, room == Room::Low);
        match (self.said, room) {
            (Room::Ample, Room::Low) => {
                tracing::error!("{}", why_low(free, &marks));
                // Nobody reads it any more once the broker has ended.
                drop(self.sweeps.send(SweepLetter::Now));
            }
            (Room::Low, Room::Ample) => tracing::info!(free, "disk space is back: records and topics are taken again"),
            (Room::Ample, Room::Ample) | (Room::Low, Room::Low) => {}
        }
        self.said = room;
        let spent = self.space.times_spent();
        for _ in self.spent..spent {
            router.metrics().disk_reserve_spent();
            tracing::error!(free, "the disk was full: what was set aside is given up for what had to be stored");
        }
        self.spent = spent;
        if room == Room::Ample && router.why_refusing().is_some() {
            router.to_ledger(LedgerLetter::Room);
        }
    }

    fn tell(&mut self, why: &str) {
        if self.told == Told::Nothing {
            self.told = Told::Failure;
            tracing::warn!("{why}");
        }
    }
}

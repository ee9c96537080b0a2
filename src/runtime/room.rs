//! Looks after the disk's room: measures it, says when it gets low and when it is back, sets some aside.

use std::sync::Arc;

use crate::engine::Now;
use crate::runtime::post::LedgerLetter;
use crate::runtime::router::Router;
use crate::store::space::{Measured, Room, Space};

/// Between two looks, in milliseconds. A fast disk takes less than the low mark in that time.
const LOOK_MS: i64 = 1_000;

/// Who looks. A plain value that a thread of its own drives, since the disk may make it wait.
pub struct RoomWatch {
    space: Arc<Space>,
    next_mono_ms: i64,
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
    /// Looks after `space`.
    #[must_use]
    pub fn new(space: Arc<Space>) -> Self {
        Self { space, next_mono_ms: 0, spent: 0, told: Told::Nothing }
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
        match self.space.renew_reserve() {
            Ok(true) => tracing::info!("disk space set aside for what must be stored when the disk is full"),
            Ok(false) => {}
            Err(error) => self.tell(&format!("no disk space can be set aside: {error}")),
        }
        router.partitions.try_again(router);
        self.next_mono_ms
    }

    fn note(&mut self, measured: &Measured, router: &Router) {
        let Measured { free, room, before, marks } = *measured;
        router.metrics().set_disk(i64::try_from(free).unwrap_or(i64::MAX), room == Room::Low);
        match (before, room) {
            (Room::Ample, Room::Low) => {
                tracing::error!(
                    free,
                    low = marks.low,
                    high = marks.high,
                    "disk space low: records and topics are refused"
                );
            }
            (Room::Low, Room::Ample) => tracing::info!(free, "disk space is back: records and topics are taken again"),
            (Room::Ample, Room::Ample) | (Room::Low, Room::Low) => {}
        }
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

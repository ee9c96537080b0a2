//! Lets the clients work, and brings them to rest between two attempts.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::child::now;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    Shut,
    Over,
}

/// Where a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Working,
    Waiting,
    /// Its thread ended before the run did.
    Fallen,
}

#[derive(Debug)]
struct Inside {
    phase: Phase,
    places: BTreeMap<String, Place>,
}

/// One for all clients of a run.
#[derive(Debug)]
pub(crate) struct Gate {
    inside: Mutex<Inside>,
    changed: Condvar,
}

/// A client's place at the gate.
pub(crate) struct Seat<'a> {
    gate: &'a Gate,
    name: String,
}

impl Gate {
    pub(crate) fn new() -> Self {
        let inside = Inside { phase: Phase::Shut, places: BTreeMap::new() };
        Self { inside: Mutex::new(inside), changed: Condvar::new() }
    }

    pub(crate) fn seat(&self, name: &str) -> Seat<'_> {
        self.inside.lock().places.insert(name.to_owned(), Place::Waiting);
        Seat { gate: self, name: name.to_owned() }
    }

    pub(crate) fn open(&self) {
        self.enter(Phase::Open);
    }

    /// Ends it for all; whoever waits goes home.
    pub(crate) fn close(&self) {
        self.enter(Phase::Over);
    }

    fn enter(&self, phase: Phase) {
        self.inside.lock().phase = phase;
        self.changed.notify_all();
    }

    /// Nobody begins anything new. Gives the names of those who are not at rest when the patience ends.
    pub(crate) fn shut(&self, patience: Duration) -> Vec<String> {
        self.enter(Phase::Shut);
        let began = now();
        let mut inside = self.inside.lock();
        loop {
            let busy = inside.places.iter().filter(|(_, place)| **place != Place::Waiting);
            let busy: Vec<_> = busy.map(|(name, place)| format!("{name} ({place:?})")).collect();
            let left = patience.saturating_sub(began.elapsed());
            if busy.is_empty() || left.is_zero() {
                return busy;
            }
            self.changed.wait_for(&mut inside, left);
        }
    }
}

impl Seat<'_> {
    /// Whether the next attempt may begin at once.
    pub(crate) fn is_open(&self) -> bool {
        self.gate.inside.lock().phase == Phase::Open
    }

    /// Waits until work may go on; false when the run is over.
    pub(crate) fn wait(&self) -> bool {
        let mut inside = self.gate.inside.lock();
        inside.places.insert(self.name.clone(), Place::Waiting);
        self.gate.changed.notify_all();
        while inside.phase == Phase::Shut {
            self.gate.changed.wait(&mut inside);
        }
        inside.places.insert(self.name.clone(), Place::Working);
        inside.phase == Phase::Open
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.gate.inside.lock().places.insert(self.name.clone(), Place::Fallen);
        self.gate.changed.notify_all();
    }
}

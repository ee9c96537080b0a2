//! A line of work that several threads take from.

use std::collections::VecDeque;

use parking_lot::{Condvar, Mutex};

/// First come, first taken; closed once.
pub struct Line<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    waiting: VecDeque<T>,
    open: bool,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self { state: Mutex::new(State { waiting: VecDeque::new(), open: true }), changed: Condvar::new() }
    }
}

impl<T> Line<T> {
    /// Puts something at the end.
    pub fn push(&self, item: T) {
        self.state.lock().waiting.push_back(item);
        self.changed.notify_one();
    }

    /// Takes from the front; waits for something to come. `None` when the line is closed and worked off.
    pub fn take(&self) -> Option<T> {
        let mut state = self.state.lock();
        loop {
            if let Some(item) = state.waiting.pop_front() {
                return Some(item);
            }
            if !state.open {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }

    /// Nothing more will come.
    pub fn close(&self) {
        self.state.lock().open = false;
        self.changed.notify_all();
    }
}

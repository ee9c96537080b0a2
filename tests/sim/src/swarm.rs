//! What a run is like. Each run has some faults and habits and lacks the others: a fault that is always on hides what
//! only happens without it.

use crate::config::{Durability, MarkerSync};
use crate::dice::Dice;
use crate::runtime::world::build::How;

/// Chances are "once in so many turns"; 0 is never.
#[derive(Debug, Clone)]
pub struct Swarm {
    /// How the broker is set.
    pub how: How,
    /// Turns before everything calms down.
    pub turns: u64,
    /// `kill -9`, between two steps or inside one.
    pub kill: u64,
    /// Power cuts.
    pub cut: u64,
    /// Stops in order.
    pub stop: u64,
    /// Whether bits may flip in what was not synced.
    pub flips: bool,
    /// Whether the end comes in the middle of a step, between two changes of the disk.
    pub inside: bool,
    /// Whether the process can end again while it starts.
    pub while_starting: bool,
    /// No room for a write of a log or of `meta.db`.
    pub no_space: u64,
    /// A write that fails.
    pub write_error: u64,
    /// A sync that fails.
    pub sync_error: u64,
    /// How much more often other things happen than a flush of `meta.db`, and than a sync of a log.
    pub slow_rows: u64,
    /// As `slow_rows`.
    pub slow_syncs: u64,
    /// The transactions' timeout, in milliseconds.
    pub timeout_ms: i32,
    /// Requests that arrive twice.
    pub twice: u64,
    /// Requests or answers that never arrive.
    pub lost: u64,
    /// Longest time a request is under way, in milliseconds.
    pub delay_ms: i64,
    /// A process that stands still for a while and does not know.
    pub stall: u64,
    /// A second process that takes over an id while the first goes on.
    pub takeover: u64,
    /// Of how many transactions one is sent without waiting for answers; 0 for none.
    pub hasty: u64,
    /// Of how many transactions one is aborted by its client.
    pub abort: u64,
    /// Topics made and deleted.
    pub topics: u64,
    /// An operator who aborts what others have open, by id or by a marker in one partition.
    pub operator: u64,
    /// Records that leave, by their age or because somebody asks.
    pub trims: u64,
    /// Leaps of time, long enough for timeouts.
    pub leap: u64,
    /// Work for quiet moments, on `meta.db`.
    pub tidy: u64,
}

impl Swarm {
    /// The run of a seed.
    #[must_use]
    pub fn new(dice: &mut Dice) -> Self {
        let mut some = |chances: &[u64]| if dice.once_in(2) { dice.pick(chances) } else { 0 };
        let (kill, cut, stop) = (some(&[150, 400, 900]), some(&[150, 400, 900]), some(&[400, 900]));
        let (no_space, write_error, sync_error) = (some(&[60, 200, 500]), some(&[300, 1_000]), some(&[200, 800]));
        let (twice, lost, stall) = (some(&[4, 12, 30]), some(&[15, 40]), some(&[60, 200]));
        let (takeover, hasty, topics) = (some(&[150, 500]), some(&[2, 4]), some(&[80, 250]));
        let (leap, tidy, trims) = (some(&[100, 400]), some(&[20, 100]), some(&[40, 150]));
        let operator = some(&[3, 30]);
        Self {
            how: How {
                durability: Durability::Strict,
                marker_sync: dice.pick(&[MarkerSync::Answer, MarkerSync::Redo]),
                segment_bytes: dice.pick(&[400, 1_500, 6_000, 1 << 20]),
                checkpoint_bytes: dice.pick(&[300, 2_000, 64 << 20]),
                ..How::default()
            },
            turns: dice.pick(&[300, 1_000, 3_000]),
            kill,
            cut,
            stop,
            flips: dice.once_in(3),
            inside: dice.once_in(2),
            while_starting: dice.once_in(3),
            no_space,
            write_error,
            sync_error,
            slow_rows: dice.pick(&[1, 1, 6, 20]),
            slow_syncs: dice.pick(&[1, 1, 6, 20]),
            timeout_ms: dice.pick(&[2_000, 3_000, 10_000]),
            twice,
            lost,
            delay_ms: dice.pick(&[1, 5, 40, 400]),
            stall,
            takeover,
            hasty,
            abort: dice.pick(&[3, 6, 20]),
            topics,
            operator,
            trims,
            leap,
            tidy,
        }
    }

    /// Nothing goes wrong and nobody is in a hurry.
    #[must_use]
    pub fn calm() -> Self {
        Self {
            how: How::default(),
            turns: 0,
            kill: 0,
            cut: 0,
            stop: 0,
            flips: false,
            inside: false,
            while_starting: false,
            no_space: 0,
            write_error: 0,
            sync_error: 0,
            slow_rows: 1,
            slow_syncs: 1,
            timeout_ms: 3_000,
            twice: 0,
            lost: 0,
            delay_ms: 1,
            stall: 0,
            takeover: 0,
            hasty: 0,
            abort: 0,
            topics: 0,
            operator: 0,
            trims: 0,
            leap: 0,
            tidy: 0,
        }
    }
}

//! P5: a batch of a sequence is stored once, however often it was sent (T-1202 (4)).

use super::Found;
use crate::history::{History, Of};
use crate::runtime::world::World;
use crate::runtime::world::invariants::nothing_twice;

/// Every partition, and every batch.
pub fn check(world: &World, history: &History, found: &Found) {
    for part in world.parts.keys() {
        nothing_twice(world, *part);
    }
    for (number, places) in &found.stored {
        let once = history.of(*number).of == Of::Plain || places.len() == 1;
        assert!(once, "P5: batch {number} is at {places:?}");
        let part = history.of(*number).part;
        assert!(places.iter().all(|place| place.0 == part), "batch {number} of {part:?} is at {places:?}");
    }
}

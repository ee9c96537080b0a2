//! P1: what was acknowledged is there, at the offset that was told, with its own content.

use super::Found;
use crate::history::{History, Of};
use crate::runtime::world::World;

/// Batches outside transactions; those of transactions are judged with their outcome.
pub fn check(world: &World, history: &History, found: &Found) {
    for (number, batch) in (0_u64..).zip(&history.batches) {
        let (Some(at), false) = (batch.acked, matches!(batch.of, Of::Attempt(_))) else { continue };
        if !world.parts.contains_key(&batch.part) || at < world.published(batch.part).log_start {
            continue;
        }
        let there = found.stored.get(&number).is_some_and(|places| places.contains(&(batch.part, at)));
        assert!(there, "P1: batch {number} was acknowledged at {at} and is not there: {batch:?}");
    }
}

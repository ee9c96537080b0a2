//! P7: memory never leads. What readers were given before a crash is what they are given after it.

use std::collections::BTreeSet;

use crate::engine::PartId;
use crate::reader::Readers;
use crate::runtime::partition::published::Availability;
use crate::runtime::world::World;

/// Partitions that were not looked at since the start.
#[derive(Debug, Default)]
pub struct Unseen(BTreeSet<PartId>);

impl Unseen {
    /// The broker was started again.
    pub fn all(&mut self, world: &World) {
        self.0 = world.parts.keys().copied().collect();
    }

    /// Looks at a partition once it is open.
    pub fn look(&mut self, world: &World, part: PartId, readers: &mut Readers) {
        if world.published(part).availability == Availability::Open && self.0.remove(&part) {
            readers.look_again(world, part);
        }
    }
}

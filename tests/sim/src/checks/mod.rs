//! What must hold: one file for each promise. A check that fails panics, as does the broker's own code where it meets
//! what cannot be; both are violations.
//!
//! What must hold while a run goes on is looked at where it happens: `history` (answers), `reader` (records), `p4_fenced`
//! (requests of former owners), `p7_memory` (after each start). The others are looked at when everything has come to rest.

pub mod end_to_end;
pub mod p1_durable;
pub mod p2_atomic;
pub mod p3_isolated;
pub mod p4_fenced;
pub mod p5_once;
pub mod p6_live;
pub mod p7_memory;

use std::collections::{BTreeMap, BTreeSet};

use crate::edge::number_in;
use crate::engine::{Offset, PartId};
use crate::runtime::world::World;

/// What readers find in the end, in all partitions there are.
#[derive(Debug, Default)]
pub struct Found {
    /// Every batch in the logs, and where.
    pub stored: BTreeMap<u64, Vec<(PartId, Offset)>>,
    /// Batches that read_committed consumers are given.
    pub visible: BTreeSet<u64>,
}

impl Found {
    /// Reads everything.
    #[must_use]
    pub fn read(world: &World) -> Self {
        let mut found = Self::default();
        for part in world.parts.keys() {
            for batch in world.read(*part, false) {
                if let Some(number) = number_in(&batch.payload) {
                    found.stored.entry(number).or_default().push((*part, batch.header.base_offset));
                }
            }
            found.visible.extend(world.read_committed(*part).iter().filter_map(|batch| number_in(&batch.payload)));
        }
        found
    }
}

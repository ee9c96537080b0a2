//! How much a start would have to verify: little, however busy a partition is, and however many there are.

use super::World;
use super::ask::id;
use super::build::How;
use crate::engine::Outcome;
use crate::store::mem_disk::Cut;

/// What one partition may owe, in bytes; a batch here has about eighty.
const ONE_MAY: u64 = 800;
const A_BATCH: u64 = 100;

fn world() -> World {
    World::new(How { checkpoint_bytes: ONE_MAY, ..How::default() })
}

fn owed(world: &World) -> u64 {
    world.part_settings.debts.bytes()
}

#[test]
fn a_partition_that_is_never_at_rest_makes_recovery_points() {
    let mut world = world();
    let p = world.topic("t", 1)[0];
    world.warm(&[p]);
    let mut asked = Vec::new();
    for n in 0..100 {
        asked.push((n, world.ask_plain(&format!("v{n}"), p)));
        // The first of its syncs is under way all the time.
        world.turn_part(p);
        assert!(owed(&world) <= 2 * ONE_MAY + A_BATCH, "2.2: {} owed after {n}", owed(&world));
    }
    let synced = world.watermark(p);
    assert!(synced > 50, "what a recovery point covers is on disk, and shown: {synced}");
    let mut acknowledged = Vec::new();
    for (n, to) in asked {
        if world.is_answered(to) {
            acknowledged.push((n, world.produced(to).expect("produced").base_offset));
        }
    }
    assert_eq!(acknowledged.len(), usize::try_from(synced).unwrap(), "P1");
    world.run_to_rest();
    world.cut_and_restart(Cut::LoseAll, 0);
    world.load(p);
    assert!(world.watermark(p) >= synced, "P1");
    assert_eq!(owed(&world), owed(&world).min(2 * ONE_MAY + A_BATCH), "what was verified is still owed");
}

#[test]
fn many_partitions_make_recovery_points_sooner() {
    let mut world = world();
    let parts = world.topic("t", 64);
    let all_may = 16 * ONE_MAY;
    for n in 0..30 {
        for part in &parts {
            world.plain(&format!("v{n}"), *part).expect("produced");
        }
        let slack = u64::try_from(parts.len()).unwrap() * A_BATCH;
        assert!(owed(&world) <= all_may + slack, "2.2: {} owed in round {n}", owed(&world));
    }
    assert!(owed(&world) > all_may / 4, "and not all the time: {}", owed(&world));
}

#[test]
fn a_transaction_outlives_a_recovery_point_in_the_middle_of_syncs() {
    for outcome in [Outcome::Commit, Outcome::Abort] {
        let mut world = world();
        let p = world.topic("t", 1)[0];
        world.warm(&[p]);
        let a = world.init("a");
        world.add("a", a, &[p]);
        for n in 0..40 {
            world.ask_produce("a", (a, n), p);
            world.turn_part(p);
        }
        assert!(world.watermark(p) > 0, "a point was made");
        world.run_to_rest();
        world.cut_and_restart(Cut::LoseAll, 0);
        assert_eq!(world.end("a", a, outcome), Ok(()));
        let count = if outcome == Outcome::Commit { 40 } else { 0 };
        assert_eq!(world.read_committed(p).len(), count, "P2, {outcome:?} of {:?}", id("a"));
    }
}

//! P6: when nothing is wrong any more nothing is owed, nothing is held back, and every id can be used.

use crate::engine::{Outcome, PartId, Refusal};
use crate::runtime::post::Answer;
use crate::runtime::world::World;
use crate::runtime::world::invariants::{all_at_rest, nothing_hangs};

/// Everything has come to rest.
pub fn check(world: &World) {
    nothing_hangs(world);
    all_at_rest(world);
}

/// And in the store nothing is owed either: a row that was forgotten there would be carried out again by a later start.
pub fn nothing_stored(world: &mut World) {
    world.stop();
    assert_eq!(world.broken, None, "P8: the last stop");
    let debts = world.stored_debts().unwrap_or_else(|error| panic!("P8: {error}"));
    assert_eq!(debts, 0, "P6: debts stay in the store");
}

/// A new owner of `id` comes and commits a transaction in each of `parts`.
pub fn still_works(world: &mut World, id: &str, parts: &[PartId]) {
    let mut producer = None;
    for _ in 0..20 {
        let to = world.ask_init(id, 60_000);
        world.run_for(700);
        match world.answer(to) {
            Answer::Producer(told) => {
                producer = Some(told);
                break;
            }
            Answer::Refused(Refusal::ConcurrentTransactions | Refusal::NotCoordinator) => {}
            other => panic!("P6: {id} gets no owner: {other:?}"),
        }
    }
    let producer = producer.unwrap_or_else(|| panic!("P6: {id} gets no owner"));
    world.add(id, producer, parts);
    for part in parts {
        world.produce(id, (producer, 0), *part);
    }
    world.end(id, producer, Outcome::Commit).unwrap_or_else(|refusal| panic!("P6: {id}: {refusal:?}"));
}

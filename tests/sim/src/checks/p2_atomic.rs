//! P2: a transaction is committed or aborted, with all its batches, as it was told, and as it was asked.

use super::Found;
use super::end_to_end::is_kept;
use crate::engine::Outcome;
use crate::history::{Attempt, History};
use crate::runtime::world::World;

/// Every attempt.
pub fn check(world: &World, history: &History, found: &Found) {
    for attempt in &history.attempts {
        let visible = |number: &u64| found.visible.contains(number);
        let any = attempt.batches.iter().any(visible);
        // Without those of topics that were deleted, or whose records went with time.
        let kept = |number: &&u64| is_kept(world, history.of(**number));
        let lost: Vec<&u64> = attempt.batches.iter().filter(kept).filter(|number| !visible(number)).collect();
        let context = || context(attempt, history, found);
        assert!(!(attempt.aborted && any), "P2, P3: aborted by an operator, and visible: {}", context());
        match attempt.told {
            Some(Outcome::Commit) => assert!(lost.is_empty(), "P1, P2: committed, without {lost:?}: {}", context()),
            Some(Outcome::Abort) => assert!(!any, "P2, P3: aborted, and visible: {}", context()),
            None if any => {
                assert_eq!(attempt.asked, Some(Outcome::Commit), "P2: nobody asked for a commit: {}", context());
                assert!(lost.is_empty(), "P2: torn, without {lost:?}: {}", context());
            }
            None => {}
        }
    }
}

fn context(attempt: &Attempt, history: &History, found: &Found) -> String {
    let batch = |number: &u64| {
        let (stored, visible) = (found.stored.get(number), found.visible.contains(number));
        format!("{number}: {:?} stored {stored:?} visible {visible}", history.of(*number))
    };
    format!("{attempt:#?} {:#?}", attempt.batches.iter().map(batch).collect::<Vec<_>>())
}

//! Exactly once, from end to end: the committed attempts of a group take its input from the beginning to the committed
//! offset, each position once. Offsets without records, records without offsets, and a zombie member's work would all
//! show here.

use std::collections::BTreeSet;

use super::Found;
use crate::engine::ledger::offsets::Seen;
use crate::engine::{Offset, Outcome, PartId};
use crate::history::{Attempt, Batch, History};
use crate::runtime::world::World;

/// One group.
pub fn check(world: &mut World, history: &History, found: &Found, (group, input): (&str, PartId)) {
    let committed = match world.offset(group, input, true) {
        Seen::Absent => 0,
        Seen::At(position) => position.offset,
        Seen::Unstable => panic!("P6: the offset of {group} stays unstable"),
    };
    let own: Vec<&Attempt> = history.attempts.iter().filter(|attempt| attempt.group == group).collect();
    let visible = |attempt: &Attempt| attempt.batches.iter().any(|number| found.visible.contains(number));
    let certain = |attempt: &&&Attempt| attempt.told == Some(Outcome::Commit) || visible(attempt);
    // Committed, perhaps: nobody was told, and nothing of it can be seen either way.
    let acked = |attempt: &Attempt| attempt.batches.iter().any(|number| is_kept(world, history.of(*number)));
    let perhaps =
        |attempt: &&&Attempt| attempt.told.is_none() && attempt.asked == Some(Outcome::Commit) && !acked(attempt);
    let sure: Vec<(Offset, Offset)> = own.iter().filter(certain).map(|attempt| (attempt.from, attempt.to)).collect();
    let maybe: Vec<(Offset, Offset)> = (own.iter())
        .filter(|attempt| perhaps(attempt) && !visible(attempt))
        .map(|attempt| (attempt.from, attempt.to))
        .collect();
    let once: BTreeSet<Offset> = sure.iter().map(|span| span.0).collect();
    assert_eq!(once.len(), sure.len(), "exactly once: {group} took a position twice: {sure:?}");
    assert!(
        leads_to(0, committed, &sure, &maybe, 0),
        "exactly once: {group} is at {committed}, committed {sure:?}, perhaps {maybe:?}"
    );
}

/// Whether a batch was acknowledged and has not left since, with its topic or its time.
pub fn is_kept(world: &World, batch: &Batch) -> bool {
    let start = world.parts.get(&batch.part).map(|entry| entry.shared.published().log_start);
    batch.acked.is_some_and(|at| start.is_some_and(|start| at >= start))
}

/// Whether all of `sure` and some of `maybe`, one behind the other, lead from `at` to `end`.
fn leads_to(at: Offset, end: Offset, sure: &[(Offset, Offset)], maybe: &[(Offset, Offset)], used: usize) -> bool {
    if at == end && used == sure.len() {
        return true;
    }
    if let Some(span) = sure.iter().find(|span| span.0 == at) {
        return leads_to(span.1, end, sure, maybe, used + 1);
    }
    let mut next: Vec<Offset> = maybe.iter().filter(|span| span.0 == at).map(|span| span.1).collect();
    next.sort_unstable();
    next.dedup();
    next.into_iter().any(|to| leads_to(to, end, sure, maybe, used))
}

//! Weaknesses that are known: where a disk without room ends the process although it should not.

use super::play::Phase;

/// What excuses a process that ended for want of space, if anything does.
pub(super) fn excuse(phase: Phase, why: &str) -> Option<&'static str> {
    match phase {
        // No space is set aside for what a start writes before it can serve: its own number and what decisions owe.
        Phase::Starting => Some("a start on a full disk fails, until there is room"),
        Phase::Serving | Phase::Stopping => {
            let _ = why;
            None
        }
    }
}

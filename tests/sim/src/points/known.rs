//! Weaknesses that are known: where a disk without room ends the process although it should not. Each is struck out when
//! it is mended: the points at which it showed are findings from then on.

use super::play::Phase;

/// When, with which words, and why that is so.
const KNOWN: [(Phase, &str, &str); 1] = [
    // A start writes its own number, and what decisions owe, before it can serve. The server gives up its reserve for
    // that; this world has none, as a server whose reserve is spent already.
    (Phase::Starting, "meta.db", "a start on a full disk fails, until there is room"),
];

/// What excuses a process that ended for want of space, if anything does.
pub(super) fn excuse(phase: Phase, why: &str) -> Option<&'static str> {
    KNOWN.iter().find(|(when, words, _)| *when == phase && why.contains(words)).map(|(_, _, reason)| *reason)
}

//! What goes wrong, and where: the nth change that a disk is asked for.

use std::fmt;

use crate::store::faults::{Change, Fault, Operation, Rule};
use crate::store::mem_disk::{Cut, MemDisk};

/// What is found after the process has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// The machine went on: what was written is there.
    Kill,
    /// The power went.
    Cut(Cut),
}

/// What goes wrong at a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// It fails so, once.
    Once(Fault),
    /// No space from here on, until somebody makes some.
    FullFromHere,
    /// The process, or all of the machine, ends here.
    Gone(After),
}

/// One thing that goes wrong.
#[derive(Debug, Clone)]
pub(super) struct Strike {
    /// Which change, counted from one.
    at: usize,
    change: Change,
    pub(super) what: What,
    rules: Vec<Rule>,
}

/// What a power cut takes, in the cases tried.
const CUTS: [Cut; 5] = [Cut::LoseAll, Cut::LoseNothing, Cut::Seed(1), Cut::Seed(2), Cut::Seed(3)];

impl Strike {
    /// Everything that can go wrong at change number `at` (counted from one) of those in `noted`.
    pub(super) fn all_at(at: usize, noted: &[Change]) -> Vec<Self> {
        let Some(change) = noted.get(at - 1) else { return Vec::new() };
        let faults: &[What] = match change.0 {
            Operation::Write => {
                &[What::Once(Fault::NoSpace), What::Once(Fault::Short(40)), What::Once(Fault::Io), What::FullFromHere]
            }
            Operation::Create => &[What::Once(Fault::NoSpace), What::Once(Fault::Io), What::FullFromHere],
            Operation::Rename => &[What::Once(Fault::NoSpace), What::Once(Fault::Io)],
            Operation::Sync | Operation::Truncate | Operation::Remove => &[What::Once(Fault::Io)],
            Operation::Read => &[],
        };
        let ends = CUTS.map(|cut| What::Gone(After::Cut(cut)));
        let all = faults.iter().copied().chain([What::Gone(After::Kill)]).chain(ends);
        all.map(|what| Self::new(at, what, noted)).collect()
    }

    /// One of them.
    pub(super) fn new(at: usize, what: What, noted: &[Change]) -> Self {
        let before = &noted[..at - 1];
        let change = noted[at - 1].clone();
        let rule = |operation: Operation, times: Option<u32>, fault: Fault| {
            let after = before.iter().filter(|(before, _)| *before == operation).count();
            Rule { after: u32::try_from(after).unwrap(), times, ..Rule::always(operation, "", fault) }
        };
        let rules = match what {
            What::Once(fault) => vec![rule(change.0, Some(1), fault)],
            What::FullFromHere => {
                [Operation::Write, Operation::Create].map(|kind| rule(kind, None, Fault::NoSpace)).into()
            }
            What::Gone(_) => Vec::new(),
        };
        Self { at, change, what, rules }
    }

    /// Puts it before a disk that has not been asked for anything yet.
    pub(super) fn arm(&self, disk: &MemDisk) {
        self.rules.iter().for_each(|rule| disk.faults().add(rule.clone()));
        if let What::Gone(_) = self.what {
            disk.power().off_after(u64::try_from(self.at).unwrap());
        }
    }

    /// Whether the broker must live through it.
    pub(super) fn is_no_space(&self) -> bool {
        matches!(self.what, What::FullFromHere | What::Once(Fault::NoSpace | Fault::Short(_)))
    }

    /// Whether what was written and not synced may be lost by it.
    pub(super) fn loses(&self) -> bool {
        let failed_sync = self.change.0 == Operation::Sync && matches!(self.what, What::Once(_));
        failed_sync || matches!(self.what, What::Gone(After::Cut(_)))
    }
}

impl fmt::Display for Strike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at change {} ({:?} of {})", self.what, self.at, self.change.0, self.change.1.display())
    }
}

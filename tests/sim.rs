//! The simulator.

use oncelog_sim::points::{self, Breadth};

/// A full disk, a failing one, a kill and a power cut at every change that a transaction asks a disk for.
#[test]
fn every_write_point() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let report = points::run(Breadth::Test, threads, None);
    println!("{} points: {:?}; known weaknesses met: {:?}", report.points, report.changes, report.known);
    assert!(report.findings.is_empty(), "{}", report.findings.join("\n\n"));
}

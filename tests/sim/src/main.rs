//! Runs the simulator.

fn main() {}

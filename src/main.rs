//! The oncelog binary.
fn main() {}

//! Builds everything once, ends everything once.

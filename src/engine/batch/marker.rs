//! Commit and abort markers: write, recognise.

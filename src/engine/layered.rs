//! A table with uncommitted rows on top.

//! Rules of the tree that no lint can hold.

//! Transactions, offsets, groups and catalog as one state.

//! Every metric in one table.

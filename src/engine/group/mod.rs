//! Classic groups.

//! A transactional id as a value.

//! Translates: one file per request kind. No state, no rules.

pub mod service;

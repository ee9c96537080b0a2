//! The broker's own engine, store and owners, driven letter by letter over a simulated disk.
//!
//! The modules of the broker below `runtime` are compiled into this crate from their own files, with `cfg(simulator)`.
//! Nothing of them is changed by that, but for `known_bugs`, where one of ten old acquaintances can be switched on.

#![allow(dead_code, reason = "the simulator needs a part of what the broker has")]
#![allow(private_interfaces, reason = "the world is no part of the broker, and of no use outside this crate")]
#![allow(unfulfilled_lint_expectations, reason = "the broker's sources expect lints that are not on here")]

#[path = "../../../src/clock/mod.rs"]
pub mod clock;
#[path = "../../../src/config/mod.rs"]
pub mod config;
#[path = "../../../src/engine/mod.rs"]
pub mod engine;
#[path = "../../../src/known_bugs.rs"]
pub mod known_bugs;
#[path = "../../../src/metrics/mod.rs"]
pub mod metrics;
#[path = "../../../src/runtime/mod.rs"]
pub mod runtime;
#[path = "../../../src/store/mod.rs"]
pub mod store;

pub mod checks;
pub mod dice;
pub mod edge;
pub mod history;
pub mod plain;
pub mod points;
pub mod process;
pub mod reader;
pub mod run;
pub mod seeds;
pub mod swarm;
pub mod vfs;

//! oncelog: a Kafka-protocol broker in one process whose heart is exactly-once transactions.
//!
//! The modules in reading order. Dependencies point one way: `net`, `http` → `api` → `runtime` → `store` → `engine`;
//! `wire` knows Kafka's bytes; `client` asks any broker, for our own commands; `clock`, `config` and `metrics` are leaves. ARCHITECTURE.md is the map.

pub mod api;
pub mod client;
pub mod clock;
pub mod config;
pub mod demo;
pub mod doctor;
pub mod engine;
pub mod http;
pub mod known_bugs;
pub mod metrics;
pub mod net;
pub mod runtime;
pub mod server;
pub mod store;
pub mod telemetry;
pub mod wire;

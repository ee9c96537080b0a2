//! Public cases: what went wrong in brokers and clients elsewhere, and was told. A test here is named after its case;
//! [`list`] says where each is tried, here or elsewhere, or why it is not.

mod groups;
mod late;
mod list;
mod producers;
mod reading;
mod rest;
mod stuck;
mod tools;

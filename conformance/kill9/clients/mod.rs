//! Those who write.

mod duellist;
mod feeder;
mod processor;
mod producer;
mod raw;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;

use crate::dice::Dice;
use crate::gate::Gate;
use crate::history::History;

pub(crate) use processor::GROUP;
pub(crate) use raw::{Line, PASSING};

/// Partitions of the topic that is read.
pub(crate) const INPUTS: i32 = 4;
/// Partitions of the topic that is written.
pub(crate) const OUTPUTS: i32 = 6;
/// How long a transaction may stay open, in milliseconds: what is left open holds everybody up no longer.
pub(crate) const TRANSACTION_TIMEOUT_MS: i32 = 1_500;

/// What all who take part have in common.
pub(crate) struct Run {
    pub(crate) seed: u64,
    /// The way through the network.
    pub(crate) proxy: SocketAddr,
    /// The way past it.
    pub(crate) broker: SocketAddr,
    pub(crate) history: Mutex<History>,
    pub(crate) gate: Gate,
    /// Whether this round refuses single batches; see [`producer::InFlight`].
    pub(crate) refuses: AtomicBool,
    /// Codes that raw clients were refused with, and how often.
    pub(crate) refusals: Mutex<BTreeMap<i16, u32>>,
}

impl Run {
    pub(crate) fn bootstrap(&self) -> String {
        self.proxy.to_string()
    }
}

/// One who writes.
trait Client {
    /// From an attempt's begin to whatever can be learnt of its end.
    fn attempt(&mut self);

    /// Waits for what is still under way; the client writes nothing until its next attempt.
    fn rest(&mut self) {}
}

/// The clients of a run, by name.
pub(crate) fn names(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{}-{}", KINDS[n % KINDS.len()], n / KINDS.len())).collect()
}

/// A third of them process, a third are at odds over an id; one feeds, one goes back to the bytes.
const KINDS: [&str; 6] = ["processor-a", "duellist-a", "feeder", "processor-b", "duellist-b", "raw"];

/// Works until the run is over.
pub(crate) fn work(run: &Run, name: &str, number: u64) {
    let seat = run.gate.seat(name);
    let dice = Dice::new(run.seed, (1 << 40) + number);
    let Some((kind, pair)) = name.rsplit_once('-') else { return };
    let mut client: Box<dyn Client + '_> = match kind {
        "feeder" => Box::new(feeder::Feeder::new(run, name, dice)),
        "raw" => Box::new(raw::Raw::new(run, name, dice)),
        "duellist-a" | "duellist-b" => Box::new(duellist::Duellist::new(run, (name, &format!("duel-{pair}")), dice)),
        _ => Box::new(processor::Processor::new(run, name, dice)),
    };
    loop {
        if !seat.is_open() {
            client.rest();
            if !seat.wait() {
                return;
            }
        }
        client.attempt();
    }
}

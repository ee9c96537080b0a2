//! Proves the broker's promises on its real process, which is killed again and again while clients work through a
//! network that is as bad as networks are. `README.md` beside this says what is done and what is found.
//!
//! usage: kill9 --broker PROGRAM --dir DIR [--fill] [--rounds N] [--seconds-a-round S] [--seed N] [--clients N]

#![expect(clippy::unwrap_used, reason = "a run that cannot go on has failed")]
#![expect(clippy::indexing_slicing, reason = "a run that finds less than it asked for has failed")]

#[path = "../../tests/it/process/child.rs"]
#[allow(dead_code, reason = "all that can be done with a broker's process, whichever of it is done")]
mod child;
mod clients;
mod dice;
mod fault;
mod gate;
mod history;
#[path = "../../tests/it/process/librdkafka.rs"]
#[allow(dead_code, reason = "what every test may do with librdkafka, whichever of it is done here")]
mod librdkafka;
mod process;
mod proxy;
#[path = "../../tests/it/raw/mod.rs"]
#[allow(dead_code, reason = "all that can be asked of a broker, whichever of it is asked")]
mod raw;
mod readers;
mod rounds;

use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lexopt::Arg::{Long, Short, Value};
use parking_lot::Mutex;

use clients::{INPUTS, OUTPUTS, Run};
use gate::Gate;
use history::{History, Topic, View};
use process::{Broker, Failed};
use proxy::Proxy;
use rounds::{Plan, Rounds};

/// Most anomalies that are printed; the first say most.
const PRINTED: usize = 20;

struct Options {
    broker: PathBuf,
    dir: PathBuf,
    can_fill: bool,
    rounds: u32,
    work: Duration,
    seed: u64,
    clients: usize,
}

fn main() -> ExitCode {
    let options = match parse() {
        Ok(options) => options,
        Err(wrong) => {
            eprintln!("kill9: {wrong}");
            return ExitCode::FAILURE;
        }
    };
    match act(&options) {
        Ok(code) => code,
        Err(failed) => {
            eprintln!("kill9: {failed}");
            ExitCode::FAILURE
        }
    }
}

fn parse() -> Result<Options, lexopt::Error> {
    use lexopt::ValueExt;
    let mut options = Options {
        broker: PathBuf::new(),
        dir: PathBuf::new(),
        can_fill: false,
        rounds: 20,
        work: Duration::from_millis(2_000),
        seed: u64::from(std::process::id()),
        clients: 7,
    };
    let mut words = lexopt::Parser::from_env();
    while let Some(word) = words.next()? {
        match word {
            Long("broker") => options.broker = words.value()?.into(),
            Long("dir") => options.dir = words.value()?.into(),
            Long("fill") => options.can_fill = true,
            Long("rounds") => options.rounds = words.value()?.parse()?,
            Long("seconds-a-round") => {
                options.work = words.value()?.parse_with(|text| text.parse().map(Duration::from_secs_f64))?;
            }
            Long("seed") => options.seed = words.value()?.parse()?,
            Long("clients") => options.clients = words.value()?.parse()?,
            Short(_) | Long(_) | Value(_) => return Err(word.unexpected()),
        }
    }
    let there = |path: &Path| path.canonicalize().map_err(|error| format!("{}: {error}", path.display()));
    options.broker = there(&options.broker)?;
    options.dir = there(&options.dir)?;
    Ok(options)
}

fn act(options: &Options) -> Result<ExitCode, Failed> {
    let volume = options.dir.join("volume");
    let port = child::free_port();
    let broker = SocketAddr::from(([127, 0, 0, 1], port));
    let proxy =
        Proxy::start(options.seed, child::free_port(), broker).map_err(|error| Failed::new(&error.to_string()))?;
    let mut process = Broker::new(&options.broker, (&volume, &options.dir), port, proxy.address());
    let run = Run {
        seed: options.seed,
        proxy: proxy.address(),
        broker,
        history: Mutex::new(History::default()),
        gate: Gate::new(),
        refuses: AtomicBool::new(false),
        refusals: Mutex::new(BTreeMap::new()),
    };
    let plan = Plan {
        rounds: options.rounds,
        work: options.work,
        volume,
        can_fill: options.can_fill,
        clients: clients::names(options.clients),
    };
    eprintln!("seed {}, clients {}, in {}", options.seed, plan.clients.join(" "), options.dir.display());
    process.spawn();
    process.serves()?;
    let mut client = raw::Client::connect(broker);
    for (topic, partitions) in [(Topic::In, INPUTS), (Topic::Out, OUTPUTS)] {
        assert_eq!(client.create_topic(topic.name(), partitions), 0, "{}", topic.name());
    }
    Ok(play(&run, &plan, Rounds::new(&run, &plan, process)))
}

/// Everybody at once. Who does not come home after something went wrong is left behind: the process ends here.
fn play(run: &Run, plan: &Plan, mut rounds: Rounds<'_>) -> ExitCode {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (number, name) in (0..).zip(&plan.clients) {
            scope.spawn(move || clients::work(run, name, number));
        }
        let over = &over;
        for view in [View::Committed, View::Uncommitted] {
            scope.spawn(move || readers::consume(run, view, over));
        }
        scope.spawn(move || readers::poll(run, over));
        let driven = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rounds.drive()));
        rounds.end();
        over.store(true, Ordering::Release);
        run.gate.close();
        let right = driven.is_ok_and(|done| report(run, plan, done));
        if !right {
            std::process::exit(1);
        }
    });
    ExitCode::SUCCESS
}

/// The last line, and before it whatever is wrong. Says whether nothing is.
fn report(run: &Run, plan: &Plan, done: u32) -> bool {
    let history = run.history.lock();
    let (count, anomalies) = (history.count(), history.anomalies());
    for anomaly in anomalies.iter().take(PRINTED) {
        eprintln!("WRONG: {anomaly}");
    }
    if anomalies.len() > PRINTED {
        eprintln!("and {} more", anomalies.len() - PRINTED);
    }
    if !anomalies.is_empty() {
        eprintln!("seed {}, clients {}", run.seed, plan.clients.len());
    }
    eprintln!("refusals that raw clients met (code: times): {:?}", run.refusals.lock());
    let said = writeln!(
        std::io::stdout(),
        "rounds {done} transactions {} committed {} aborted {} records {} anomalies {}",
        count.transactions,
        count.committed,
        count.aborted,
        count.records,
        anomalies.len()
    );
    said.is_ok() && anomalies.is_empty()
}

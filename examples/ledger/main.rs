//! A ledger that counts every payment exactly once, whatever is killed on the way.
//!
//! `run` reads payments, keeps the balance of each account, and writes each change to two topics. What it wrote and how
//! far it read are one transaction: after a crash of this program, of its machine or of the broker, either both
//! happened or neither. `verify` proves it from the outside.

mod clients;
mod load;
mod outcome;
mod payments;
mod reading;
mod run;
mod session;
mod verify;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::Arg::{Long, Short, Value};

const USAGE: &str = "\
usage: ledger make-file [--file FILE] [--payments N]
       ledger load      [--bootstrap HOST:PORT] [--file FILE]
       ledger run       [--bootstrap HOST:PORT] [--instance N] [--batch N] [--abort-every N] [--die-after N]
       ledger verify    [--bootstrap HOST:PORT] [--file FILE] [--wait-s N]

make-file  writes a file of payments, the same one every time
load       puts the file's payments into the topic payments, all or none
run        reads payments, writes balance-changes and audit; several instances share the work
             --instance N     this one's number, the same after a restart and never used twice at once (1)
             --batch N        payments of one transaction, at most (50)
             --abort-every N  abort each Nth transaction on purpose
             --die-after N    die without a word in the middle of the Nth transaction
verify     compares both topics with the file; exit code 1 if a single payment is missing or counted twice
             --wait-s N       first wait this long, at most, until all payments are processed (0)
";

/// What every command may be told.
struct Options {
    bootstrap: String,
    file: PathBuf,
    payments: u32,
    wait_s: u32,
    run: run::Options,
}

/// Why the program ends without success.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// The broker, or the way to it.
    #[error("{0}")]
    Kafka(#[from] rdkafka::error::KafkaError),
    /// The file, or standard output.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// Anything that one sentence says.
    #[error("{0}")]
    Says(String),
}

fn main() -> ExitCode {
    match act() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("ledger: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn act() -> Result<(), Failure> {
    let (command, options) = parse().map_err(|wrong| Failure::Says(format!("{wrong}\n\n{USAGE}")))?;
    match command.as_str() {
        "make-file" => payments::make_file(&options.file, options.payments),
        "load" => load::load(&options.bootstrap, &options.file),
        "run" => run::run(&options.bootstrap, &options.run),
        "verify" => verify::verify(&options.bootstrap, &options.file, options.wait_s),
        "help" => Ok(std::io::stdout().write_all(USAGE.as_bytes())?),
        other => Err(Failure::Says(format!("{other:?} is not a command\n\n{USAGE}"))),
    }
}

fn parse() -> Result<(String, Options), lexopt::Error> {
    use lexopt::ValueExt;
    let mut options = Options {
        bootstrap: "127.0.0.1:9092".to_owned(),
        file: PathBuf::from("examples/ledger/payments.csv"),
        payments: 3_000,
        wait_s: 0,
        run: run::Options { instance: 1, batch: 50, abort_every: 0, die_after: 0 },
    };
    let mut command = None;
    let mut words = lexopt::Parser::from_env();
    while let Some(word) = words.next()? {
        match word {
            Long("bootstrap") => options.bootstrap = words.value()?.string()?,
            Long("file") => options.file = words.value()?.into(),
            Long("payments") => options.payments = words.value()?.parse()?,
            Long("wait-s") => options.wait_s = words.value()?.parse()?,
            Long("instance") => options.run.instance = words.value()?.parse()?,
            Long("batch") => options.run.batch = words.value()?.parse()?,
            Long("abort-every") => options.run.abort_every = words.value()?.parse()?,
            Long("die-after") => options.run.die_after = words.value()?.parse()?,
            Long("help") | Short('h') => command = Some("help".to_owned()),
            Value(name) if command.is_none() => command = Some(name.string()?),
            Short(_) | Long(_) | Value(_) => return Err(word.unexpected()),
        }
    }
    Ok((command.unwrap_or_else(|| "help".to_owned()), options))
}

//! Plays scripts of requests against a broker: against Apache Kafka to record what it says, against oncelog to compare.
//!
//! usage: replay [--record] [--bootstrap HOST:PORT] [--broker PROGRAM] [--hold FROM:PORT,TO:PORT] [--jobs N] [NAME…]
//!        replay --coverage [--check]

#![expect(clippy::unwrap_used, reason = "a number that cannot be is a mistake in a script")]
#![expect(clippy::indexing_slicing, reason = "as above")]
#![expect(clippy::cast_possible_truncation, reason = "bytes of numbers")]
#![expect(clippy::print_stdout, reason = "what it is for")]
#![expect(clippy::wildcard_enum_match_arm, reason = "kinds of fields that are put down alike")]

mod broker;
mod codec;
mod compare;
mod connection;
mod coverage;
mod normal;
mod play;
mod proxy;
mod records;
mod run;
mod schema;
mod script;
#[cfg(test)]
mod tests;
mod tree;

use std::process::ExitCode;

use lexopt::Arg::{Long, Short, Value};

use run::{Options, Task};

fn main() -> ExitCode {
    let done = parse().map_err(|wrong| wrong.to_string()).and_then(|options| run::run(&options));
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(wrong) => {
            eprintln!("replay: {wrong}");
            ExitCode::FAILURE
        }
    }
}

fn parse() -> Result<Options, lexopt::Error> {
    use lexopt::ValueExt;
    let mut options = Options::default();
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("record") => options.task = Task::Record,
            Long("coverage") => options.task = Task::Coverage,
            Long("check") => options.check = true,
            Long("bootstrap") => options.bootstrap = Some(arguments.value()?.parse()?),
            Long("broker") => options.broker = Some(arguments.value()?.into()),
            Long("source") => options.source = arguments.value()?.string()?,
            Long("hold") => {
                let pair = arguments.value()?.string()?;
                let (from, to) = pair.split_once(',').ok_or("two addresses are wanted")?;
                let address = |text: &str| text.parse().map_err(|_| "an address is wanted");
                options.hold = Some((address(from)?, address(to)?));
            }
            Long("jobs") => options.jobs = arguments.value()?.parse()?,
            Value(name) => options.names.push(name.string()?),
            Long(_) | Short(_) => return Err(argument.unexpected()),
        }
    }
    Ok(options)
}

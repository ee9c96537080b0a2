//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use super::ConfigError;

mod own;
#[cfg(test)]
mod tests;

pub use own::{Demo, Doctor, Txn, TxnWish};

/// What the program is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Run the broker.
    Serve,
    /// Print every setting and where it came from.
    Config,
    /// Ask a running broker whether it is ready.
    Healthcheck,
    /// Ask a running broker about its transactions.
    Txn(Txn),
    /// Find out whether clients can reach a broker.
    Doctor(Doctor),
    /// Put a load on a broker that shows all it can do.
    Demo(Demo),
    /// Print the version.
    Version,
    /// Print how to use the program.
    Help,
}

/// What the command line says of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags {
    /// The file to read instead of `oncelog.toml`; it must exist.
    pub config: Option<PathBuf>,
    /// Key, value, and how it was written, in the order given.
    pub set: Vec<(String, String, String)>,
}

/// How to use the program.
pub const HELP: &str = "\
oncelog: a Kafka-protocol broker whose heart is exactly-once transactions

usage: oncelog [command] [flags]

commands
  serve         run the broker (when no command is given)
  config        print every setting, its value and where it came from
  healthcheck   ask the broker at admin.bind whether it is ready; exit 0 if it is
  txn           ask a broker about its transactions: list, show ID, blocked, abort ID, fence ID
  doctor        find out what clients of a broker are told, and whether they can connect there; exit 0 if they can
  demo          put a load on a broker that commits, aborts, hangs and is fenced, until it is told to stop

flags
  --config FILE      read FILE instead of oncelog.toml
  --data-dir DIR     keep everything in DIR
  --set KEY=VALUE    set one setting, such as topics.default_partitions=6; may be repeated
  --version, -V      print the version
  --help, -h         print this

flags of txn
  --admin HOST:PORT        the broker's admin port; admin.bind if it is not given
  --json                   print what the broker answers
  --state STATE            list: those in this state, such as Ongoing; may be repeated
  --prefix TEXT            list: those whose id begins with it
  --longer-than-s N        list: those open for longer than N seconds

flags of doctor
  --bootstrap HOST:PORT,…  where clients connect first; needed
  --transaction            also commit a transaction, abort another, and read back what should be there
  --timeout-s N            give up after N seconds (30)

flags of demo
  --bootstrap HOST:PORT,…  where it connects first; needed
  --seconds N              stop after N seconds

Settings come from oncelog.toml, then the environment (ONCELOG_TOPICS__AUTO_CREATE is topics.auto_create), then flags.
";

/// Reads the command line, the program's own name left out.
///
/// # Errors
/// What is not understood, in one sentence.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<(Command, Flags), ConfigError> {
    use lexopt::Arg::{Long, Short, Value};
    let mut parser = lexopt::Parser::from_args(args);
    let mut command = None;
    let mut flags = Flags::default();
    while let Some(arg) = parser.next().map_err(wrong)? {
        match arg {
            Short('h') | Long("help") => return Ok((Command::Help, flags)),
            Short('V') | Long("version") => return Ok((Command::Version, flags)),
            Long("config") => flags.config = Some(parser.value().map_err(wrong)?.into()),
            Long("data-dir") => {
                let dir = text(parser.value().map_err(wrong)?)?;
                flags.set.push(("data_dir".to_owned(), dir, "--data-dir".to_owned()));
            }
            Long("set") => flags.set.push(setting(&text(parser.value().map_err(wrong)?)?)?),
            Value(word) if command.is_none() => command = Some(named(&text(word)?)?),
            Long(flag) => {
                let flag = flag.to_owned();
                own::take(command.as_mut(), &flag, &mut parser)?;
            }
            Value(word) => own::take_word(command.as_mut(), text(word)?)?,
            Short(_) => return Err(wrong(arg.unexpected())),
        }
    }
    let command = command.unwrap_or(Command::Serve);
    own::check(&command, &flags)?;
    Ok((command, flags))
}

fn setting(written: &str) -> Result<(String, String, String), ConfigError> {
    let (key, value) = written
        .split_once('=')
        .ok_or_else(|| ConfigError(format!("--set {written} has no value: write --set {written}=VALUE")))?;
    Ok((key.trim().to_owned(), value.to_owned(), format!("--set {key}")))
}

fn named(word: &str) -> Result<Command, ConfigError> {
    match word {
        "serve" => Ok(Command::Serve),
        "config" => Ok(Command::Config),
        "healthcheck" => Ok(Command::Healthcheck),
        "txn" => Ok(Command::Txn(Txn::default())),
        "doctor" => Ok(Command::Doctor(Doctor::default())),
        "demo" => Ok(Command::Demo(Demo::default())),
        "version" => Ok(Command::Version),
        "help" => Ok(Command::Help),
        _ => Err(ConfigError(format!(
            "{word:?} is not a command: write serve, config, healthcheck, txn, doctor or demo"
        ))),
    }
}

fn text(word: OsString) -> Result<String, ConfigError> {
    word.into_string().map_err(|word| ConfigError(format!("{word:?} on the command line is not valid text")))
}

fn wrong(error: lexopt::Error) -> ConfigError {
    ConfigError(format!("{error}: `oncelog --help` shows what can be written"))
}

//! Flags that belong to one command.

use std::time::Duration;

use lexopt::Parser;

use super::{Command, Flags, text, wrong};
use crate::config::{ConfigError, HostPort};

/// Flags of `doctor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doctor {
    /// Where clients connect first; one at least.
    pub bootstrap: Vec<HostPort>,
    /// Whether a transaction is run and read back.
    pub transaction: bool,
    /// How long all of it may take.
    pub timeout: Duration,
}

impl Default for Doctor {
    fn default() -> Self {
        Self { bootstrap: Vec::new(), transaction: false, timeout: Duration::from_secs(30) }
    }
}

/// Flags of `demo`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Demo {
    /// Where it connects first; one at least.
    pub bootstrap: Vec<HostPort>,
    /// How long it runs; until it is told to stop when nothing is said.
    pub length: Option<Duration>,
}

/// Flags of `txn`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Txn {
    /// What is wanted.
    pub wish: TxnWish,
    /// The admin port, if not this configuration's own.
    pub admin: Option<HostPort>,
    /// Whether the answer is printed as it came.
    pub json: bool,
    /// Only these states.
    pub states: Vec<String>,
    /// Only ids that begin with it.
    pub prefix: Option<String>,
    /// Only those open for longer.
    pub longer_than: Option<Duration>,
}

/// What is wanted of transactions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TxnWish {
    /// Nothing is said: all of them.
    #[default]
    List,
    /// All of them.
    All,
    /// Those that hold readers back, by partition.
    Blocked,
    /// One.
    Show(String),
    /// To abort an open one.
    Abort(String),
    /// To fence the owner of an id.
    Fence(String),
}

/// The longest time that can be asked for.
const MOST_SECONDS: u64 = 365 * 24 * 3600;

/// Gives a flag that not every command has to the command that was named before it.
pub(super) fn take(command: Option<&mut Command>, flag: &str, parser: &mut Parser) -> Result<(), ConfigError> {
    let mut value = || parser.value().map_err(wrong).and_then(text);
    match (command, flag) {
        (Some(Command::Doctor(own)), "bootstrap") => own.bootstrap = addresses(&value()?)?,
        (Some(Command::Doctor(own)), "transaction") => own.transaction = true,
        (Some(Command::Doctor(own)), "timeout-s") => own.timeout = seconds(flag, &value()?)?,
        (Some(Command::Demo(own)), "bootstrap") => own.bootstrap = addresses(&value()?)?,
        (Some(Command::Demo(own)), "seconds") => own.length = Some(seconds(flag, &value()?)?),
        (Some(Command::Txn(own)), "admin") => own.admin = addresses(&value()?)?.pop(),
        (Some(Command::Txn(own)), "json") => own.json = true,
        (Some(Command::Txn(own)), "state") => own.states.push(value()?),
        (Some(Command::Txn(own)), "prefix") => own.prefix = Some(value()?),
        (Some(Command::Txn(own)), "longer-than-s") => own.longer_than = Some(seconds(flag, &value()?)?),
        (command, _) => return Err(unknown(command.as_deref(), flag)),
    }
    Ok(())
}

/// Gives a further word to the command that was named before it.
pub(super) fn take_word(command: Option<&mut Command>, word: String) -> Result<(), ConfigError> {
    match command {
        Some(Command::Txn(own)) => own.wish.take(word),
        Some(_) | None => Err(misplaced(&word)),
    }
}

fn misplaced(word: &str) -> ConfigError {
    ConfigError(format!("{word:?} has no place here: `oncelog --help` shows what can be written"))
}

impl TxnWish {
    fn take(&mut self, word: String) -> Result<(), ConfigError> {
        match self {
            Self::Show(id) | Self::Abort(id) | Self::Fence(id) if id.is_empty() => *id = word,
            Self::List => *self = Self::named(&word)?,
            Self::All | Self::Blocked | Self::Show(_) | Self::Abort(_) | Self::Fence(_) => {
                return Err(misplaced(&word));
            }
        }
        Ok(())
    }

    fn named(word: &str) -> Result<Self, ConfigError> {
        match word {
            "list" => Ok(Self::All),
            "blocked" => Ok(Self::Blocked),
            "show" => Ok(Self::Show(String::new())),
            "abort" => Ok(Self::Abort(String::new())),
            "fence" => Ok(Self::Fence(String::new())),
            _ => Err(ConfigError(format!("{word:?} is nothing to do: write list, show, blocked, abort or fence"))),
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        match self {
            Self::Show(id) | Self::Abort(id) | Self::Fence(id) if id.is_empty() => {
                Err(ConfigError("which one? write its transactional id behind it".to_owned()))
            }
            Self::List | Self::All | Self::Blocked | Self::Show(_) | Self::Abort(_) | Self::Fence(_) => Ok(()),
        }
    }
}

/// What must be there, and what would be passed over in silence.
pub(super) fn check(command: &Command, flags: &Flags) -> Result<(), ConfigError> {
    let (name, bootstrap) = match command {
        Command::Doctor(own) => ("doctor", &own.bootstrap),
        Command::Demo(own) => ("demo", &own.bootstrap),
        Command::Txn(own) => return own.wish.check(),
        Command::Serve | Command::Config | Command::Healthcheck | Command::Version | Command::Help => return Ok(()),
    };
    if *flags != Flags::default() {
        let why = "it reads no settings, so --config, --data-dir and --set mean nothing to it";
        return Err(ConfigError(format!("oncelog {name} asks a broker from outside: {why}")));
    }
    if bootstrap.is_empty() {
        return Err(ConfigError(format!("oncelog {name} needs a broker: write --bootstrap HOST:PORT")));
    }
    Ok(())
}

fn unknown(command: Option<&Command>, flag: &str) -> ConfigError {
    let (name, known) = match command {
        Some(Command::Doctor(_)) => ("oncelog doctor", "--bootstrap, --transaction and --timeout-s"),
        Some(Command::Demo(_)) => ("oncelog demo", "--bootstrap and --seconds"),
        Some(Command::Txn(_)) => ("oncelog txn", "--admin, --json, --state, --prefix and --longer-than-s"),
        Some(Command::Serve | Command::Config | Command::Healthcheck | Command::Version | Command::Help) | None => {
            ("oncelog", "--config, --data-dir and --set; a command's own flags come after its name")
        }
    };
    ConfigError(format!("{name} has no flag --{flag}, only {known}: `oncelog --help` shows what can be written"))
}

/// `HOST:PORT`, or several with commas between them.
fn addresses(list: &str) -> Result<Vec<HostPort>, ConfigError> {
    let address = |word: &str| match word.trim().parse::<HostPort>() {
        Ok(address) if address.port > 0 => Ok(address),
        Ok(_) => Err(ConfigError(format!("--bootstrap {word}: nobody can connect to port 0"))),
        Err(why) => Err(ConfigError(format!("--bootstrap {list}: {why}; write HOST:PORT"))),
    };
    list.split(',').map(address).collect()
}

fn seconds(flag: &str, written: &str) -> Result<Duration, ConfigError> {
    match written.parse() {
        Ok(seconds @ 1..=MOST_SECONDS) => Ok(Duration::from_secs(seconds)),
        Ok(_) | Err(_) => Err(ConfigError(format!("--{flag} {written}: write a number of seconds, 1 or more"))),
    }
}

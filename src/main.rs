//! The oncelog binary: arguments, configuration, run, exit code.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use oncelog::config::{Command, Config, ConfigError, Flags, Loaded, Surroundings, Txn, flags};
use oncelog::http::{probe, txn};
use oncelog::telemetry::{self, Traces};
use oncelog::{demo, doctor, server};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long the end waits for threads that are still reading files.
const FAREWELL: Duration = Duration::from_secs(5);

/// Why the program ends with a code other than 0.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Config(#[from] ConfigError),
    #[error("{0}")]
    Start(#[from] server::StartError),
    #[error("not healthy: {0}")]
    Health(String),
    #[error("{0}")]
    Doctor(#[from] doctor::Unwell),
    #[error("{0}")]
    Demo(#[from] demo::Stopped),
    #[error("{0}")]
    System(String),
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
}

fn main() -> ExitCode {
    match act() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Nowhere is left to say that standard error is closed; the exit code still does.
            let said = writeln!(io::stderr(), "oncelog: {failure}");
            let config = matches!(failure, Failure::Config(_)) && said.is_ok();
            if config { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

fn act() -> Result<(), Failure> {
    let (command, flags) = flags::parse(std::env::args_os().skip(1))?;
    match command {
        Command::Serve => serve(load(&flags)?),
        Command::Config => Ok(show(&load(&flags)?)?),
        Command::Healthcheck => probe::ready(&load(&flags)?.config.admin.bind).map_err(Failure::Health),
        Command::Txn(txn) => ask(&txn, &flags),
        Command::Doctor(own) => Ok(doctor::run(&own, &mut io::stdout())?),
        Command::Demo(own) => Ok(demo::run(&own, &mut io::stdout())?),
        Command::Version => Ok(writeln!(io::stdout(), "oncelog {}", env!("CARGO_PKG_VERSION"))?),
        Command::Help => Ok(io::stdout().write_all(flags::HELP.as_bytes())?),
    }
}

/// Asks the broker that is named, or the one that this configuration describes.
fn ask(own: &Txn, flags: &Flags) -> Result<(), Failure> {
    let admin = match &own.admin {
        Some(admin) => admin.clone(),
        None => load(flags)?.config.admin.bind,
    };
    let user = std::env::var("USER").unwrap_or_default();
    let user: String = user.chars().filter(|letter| !letter.is_control()).collect();
    let operator = if user.trim().is_empty() { "oncelog txn".to_owned() } else { user };
    let text = txn::run(own, &admin, &operator).map_err(Failure::System)?;
    Ok(io::stdout().write_all(text.as_bytes())?)
}

/// Lets the process have as many files open as it is allowed to: each segment that is read and each client takes one.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => tracing::info!(from = limit.current, to = limit.maximum, "limit of open files"),
        Err(error) => tracing::warn!(limit = limit.current, %error, "the limit of open files stays"),
    }
}

fn load(flags: &Flags) -> Result<Loaded, ConfigError> {
    Config::load(flags, &Surroundings::of_process())
}

fn show(loaded: &Loaded) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for shown in &loaded.values {
        let value = if shown.value.is_empty() { "(not set)" } else { &shown.value };
        writeln!(out, "{:<38} {value:<24} {:<16} {}", shown.key, shown.origin.to_string(), shown.meaning)?;
    }
    loaded.notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))
}

fn serve(loaded: Loaded) -> Result<(), Failure> {
    let telemetry = telemetry::init(&loaded.config).map_err(Failure::System)?;
    for note in &loaded.notes {
        tracing::warn!("{note}");
    }
    raise_open_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("oncelog")
        .build()
        .map_err(|error| Failure::System(format!("the threads that serve clients cannot start: {error}")))?;
    let ended = runtime.block_on(until_told(loaded.config, telemetry.traces()));
    runtime.shutdown_timeout(FAREWELL);
    telemetry.finish();
    ended
}

/// The first SIGTERM or SIGINT asks for a clean end; a second one does not wait for it.
async fn until_told(config: Config, traces: Option<Arc<Traces>>) -> Result<(), Failure> {
    let listen = |kind| {
        signal(kind).map_err(|error| Failure::System(format!("the system's signals cannot be listened to: {error}")))
    };
    let mut signals = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let (stop, stopping) = oneshot::channel::<()>();
    let told = async {
        next(&mut signals).await;
        tracing::info!("asked to stop: finishing what is under way");
        drop(stop);
        next(&mut signals).await;
    };
    // The sender says what it has to say by being dropped.
    let stopping = async { stopping.await.unwrap_or_default() };
    tokio::select! {
        ended = server::run(config, traces, stopping) => Ok(ended?),
        () = told => Err(Failure::System("asked to stop a second time: ended without finishing".to_owned())),
    }
}

async fn next((terminate, interrupt): &mut (Signal, Signal)) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

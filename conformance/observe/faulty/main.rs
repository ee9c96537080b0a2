//! The broker, on a disk where some files find no room while a switch is there: what a run of the alerts needs to see
//! markers fail. The switch is a file, its content the text that is in the failing files' paths. Nothing of this is in the
//! program that ships.
//!
//! usage: faulty SWITCH [the broker's own flags]

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use oncelog::config::{Config, Surroundings, flags};
use oncelog::server::{self, Parts};
use oncelog::store::faults::{Fault, Faults, FaultyDisk, Operation, Rule};
use oncelog::telemetry;
use tokio::signal::unix::{SignalKind, signal};

/// How often it is looked whether the switch is there.
const LOOK: Duration = Duration::from_millis(50);

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut words = std::env::args_os().skip(1);
    let switch = PathBuf::from(words.next().ok_or("usage: faulty SWITCH [the broker's own flags]")?);
    let config = load(words)?;
    let _telemetry = telemetry::init(&config)?;
    let faults = Faults::default();
    let own = faults.clone();
    let mut parts = Parts::real(&config);
    parts.wrap_disk = Box::new(move |disk| Arc::new(FaultyDisk::new(disk, own)));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let running = server::start(config, parts).await?;
        tracing::info!(switch = %switch.display(), "ready, and fails as this file says");
        tokio::select! {
            () = follow(switch, faults) => {}
            _ = terminate.recv() => {}
        }
        running.stop().await?;
        Ok(())
    })
}

fn load(words: impl Iterator<Item = OsString>) -> Result<Config, Failure> {
    let (_, flags) = flags::parse(words)?;
    Ok(Config::load(&flags, &Surroundings::of_process())?.config)
}

/// Keeps the disk as the switch says, for ever.
async fn follow(switch: PathBuf, faults: Faults) {
    let mut failing = None;
    loop {
        // Written in one go or not there: an empty text would strike everything.
        let wanted = std::fs::read_to_string(&switch).ok().filter(|path| !path.is_empty());
        if wanted != failing {
            faults.lift();
            if let Some(path) = &wanted {
                faults.add(Rule::always(Operation::Write, path, Fault::NoSpace));
            }
            failing = wanted;
        }
        tokio::time::sleep(LOOK).await;
    }
}

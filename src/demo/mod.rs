//! `oncelog demo`: a modest load in which transactions commit, abort, hang, are timed out and fenced, so that there is
//! something to see in every dashboard. It goes on over restarts of the broker.

mod follower;
mod readers;
mod shop;
mod stage;
mod tally;
mod trouble;

use std::convert::Infallible;
use std::future::Future;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};

use crate::client::Failure;
use crate::config::flags::Demo;
use stage::Stage;

/// How often a line is written.
const LINE: Duration = Duration::from_secs(10);
/// How long an actor waits who has met a failure; longer each time, and from the beginning after a good while.
const SHORTEST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
const GOOD_WHILE: Duration = Duration::from_secs(10);

/// Why the demo ends with anything but a success.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// It was to run for a time, and nothing came about in it.
    #[error("no transaction was committed: {0}")]
    Idle(String),
    /// The system does not give what is needed.
    #[error("the demo cannot run: {0}")]
    System(#[from] io::Error),
}

/// Runs until its time is over, or SIGTERM or SIGINT tells it to stop.
///
/// # Errors
/// Nothing came about in the time that was given, or a line could not be written.
pub fn run(flags: &Demo, out: &mut (dyn Write + Send)) -> Result<(), Stopped> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(play(flags, out));
    // A name that is still being looked up would be waited for otherwise.
    runtime.shutdown_background();
    ended
}

async fn play(flags: &Demo, out: &mut (dyn Write + Send)) -> Result<(), Stopped> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stage = Arc::new(Stage::new(&flags.bootstrap));
    let mut actors = JoinSet::new();
    shop::enter(&stage, &mut actors);
    trouble::enter(&stage, &mut actors);
    readers::enter(&stage, &mut actors);
    let began = Instant::now();
    let over = async {
        match flags.length {
            Some(length) => sleep(length).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(over);
    let mut lines = interval(LINE);
    lines.tick().await;
    let told = loop {
        tokio::select! {
            () = &mut over => break false,
            _ = terminate.recv() => break true,
            _ = interrupt.recv() => break true,
            _ = lines.tick() => writeln!(out, "{:>5} s: {}", began.elapsed().as_secs(), stage.tally)?,
        }
    };
    actors.shutdown().await;
    writeln!(out, "ended: {}", stage.tally)?;
    let idle = stage.tally.committed() == 0 && !told;
    if idle { Err(Stopped::Idle(stage.tally.last_failure())) } else { Ok(()) }
}

/// Lets an actor begin again whenever it has met a failure.
async fn forever<F>(stage: Arc<Stage>, act: impl Fn(Arc<Stage>) -> F)
where
    F: Future<Output = Result<Infallible, Failure>>,
{
    let mut pause = SHORTEST_PAUSE;
    loop {
        let began = Instant::now();
        let Err(failure) = act(Arc::clone(&stage)).await;
        stage.failed(&failure);
        if began.elapsed() > GOOD_WHILE {
            pause = SHORTEST_PAUSE;
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

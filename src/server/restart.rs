//! Starting over, when it is not known any more what is on disk.
//!
//! A failed sync leaves pages that look written and are not (storage rule 3.5). Nothing that runs may be believed, so
//! the process replaces itself: no destructor runs, nothing is flushed, and the new one reads from the device.

use std::os::unix::process::CommandExt;
use std::time::Duration;

use crate::config::OnSyncFailure;
use crate::engine::Now;
use crate::store::StoreError;

/// Says how often in a row the process has replaced itself. Not a setting.
const COUNT: &str = "_ONCELOG_RESTARTS";
/// A process that lived this long starts counting anew, in milliseconds.
const LONG_LIFE_MS: i64 = 60_000;
/// Longest pause before a new try.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Says what happened, in one line, and does not come back.
pub(super) fn start_over(error: &StoreError, policy: OnSyncFailure, now: Now) {
    tracing::error!(%error, ?policy, "storage failed: what is on disk is not known any more, starting over");
    let code = match policy {
        OnSyncFailure::Exit => 70,
        OnSyncFailure::Restart => replace(now),
    };
    std::process::exit(code);
}

/// Replaces the process by a new one of its own kind; gives an exit code if the system does not let it.
fn replace(now: Now) -> i32 {
    let before = if now.mono_ms >= LONG_LIFE_MS { 0 } else { count() };
    match std::env::current_exe() {
        Ok(exe) => {
            let args = std::env::args_os().skip(1);
            let error =
                std::process::Command::new(exe).args(args).env(COUNT, before.saturating_add(1).to_string()).exec();
            tracing::error!(%error, "the process cannot start itself over");
        }
        Err(error) => tracing::error!(%error, "the process cannot start itself over: its own program is not known"),
    }
    70
}

fn count() -> u32 {
    std::env::var(COUNT).ok().and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Waits before a start that follows a failure: a second, doubling to thirty.
pub(super) async fn pause() {
    let times = count();
    if times > 0 {
        let pause = Duration::from_secs(1 << times.saturating_sub(1).min(5)).min(LONGEST_PAUSE);
        tracing::warn!(times, ?pause, "starting over after a storage failure");
        tokio::time::sleep(pause).await;
    }
}

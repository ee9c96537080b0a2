//! Those who only read, each in a group of its own.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::follower::Follower;
use super::forever;
use super::stage::Stage;
use crate::client::{Failure, Isolation};

/// How long it is waited for records.
const WAIT: Duration = Duration::from_millis(500);
/// How long the slow one does nothing at all.
const REST: Duration = Duration::from_secs(20);
/// The longest it then takes to catch up.
const SPURT: Duration = Duration::from_secs(10);

/// Starts them.
pub(super) fn enter(stage: &Arc<Stage>, actors: &mut JoinSet<()>) {
    actors.spawn(forever(Arc::clone(stage), |stage| async move {
        let payments = stage.payments.clone();
        let own = Follower::new(&stage, "demo-statement", &payments, Isolation::ReadCommitted).await?;
        steadily(&stage, own, Isolation::ReadCommitted).await
    }));
    // It is held back while a transaction is open that has written to its partition.
    actors.spawn(forever(Arc::clone(stage), |stage| async move {
        let audit = stage.audit.clone();
        let own = Follower::new(&stage, "demo-audit-committed", &audit, Isolation::ReadCommitted).await?;
        steadily(&stage, own, Isolation::ReadCommitted).await
    }));
    actors.spawn(forever(Arc::clone(stage), |stage| async move {
        let audit = stage.audit.clone();
        let own = Follower::new(&stage, "demo-audit-all", &audit, Isolation::ReadUncommitted).await?;
        steadily(&stage, own, Isolation::ReadUncommitted).await
    }));
    actors.spawn(forever(Arc::clone(stage), now_and_then));
}

async fn steadily(stage: &Stage, mut own: Follower, isolation: Isolation) -> Result<Infallible, Failure> {
    let mut committed = Instant::now();
    let mut owes = false;
    loop {
        let reads = own.poll(WAIT).await?;
        stage.tally.read(isolation, reads.iter().map(|read| read.shown).sum());
        owes |= own.advance(&reads);
        if owes && committed.elapsed() >= Duration::from_secs(1) {
            own.commit().await?;
            (committed, owes) = (Instant::now(), false);
        }
        // A reader that is handed every record by itself keeps a core busy.
        sleep(Duration::from_millis(100)).await;
    }
}

/// A group that is behind more and more, catches up at once, and loses its only member and gets it back.
async fn now_and_then(stage: Arc<Stage>) -> Result<Infallible, Failure> {
    let isolation = Isolation::ReadCommitted;
    let mut own = Follower::new(&stage, "demo-report", &stage.payments, isolation).await?;
    loop {
        let began = Instant::now();
        while began.elapsed() < SPURT {
            let reads = own.poll(WAIT).await?;
            let shown: u64 = reads.iter().map(|read| read.shown).sum();
            stage.tally.read(isolation, shown);
            own.advance(&reads);
            own.commit().await?;
            if reads.iter().all(|read| read.next >= read.end) {
                break;
            }
        }
        let began = Instant::now();
        while began.elapsed() < REST {
            own.keep().await?;
            sleep(Duration::from_secs(1)).await;
        }
        own.leave().await?;
    }
}

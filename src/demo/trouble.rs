//! Those who do it wrong, each in its own way, and what the broker makes of them.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::forever;
use super::stage::{Stage, every, pick};
use crate::client::{Failure, Producer};

/// Starts them.
pub(super) fn enter(stage: &Arc<Stage>, actors: &mut JoinSet<()>) {
    actors.spawn(forever(Arc::clone(stage), hang));
    actors.spawn(forever(Arc::clone(stage), share_an_id));
    actors.spawn(forever(Arc::clone(stage), stutter));
}

/// How long the one that hangs may leave its transaction open.
const HANGING_MS: i32 = 20_000;
/// How long it hangs.
const HANGING: Duration = Duration::from_secs(24);

/// Leaves a transaction open until the broker ends it, and with it holds back who reads committed records of `audit`.
/// Then it is told so, begins anew and behaves for a while.
async fn hang(stage: Arc<Stage>) -> Result<Infallible, Failure> {
    const ID: &str = "demo-hanging";
    loop {
        let mut producer = Producer::transactional(stage.connect(ID).await?, ID, HANGING_MS).await?;
        let audit = pick(&stage.audit, 0);
        producer.send(&audit, vec!["left open".to_owned()]).await?;
        sleep(HANGING).await;
        match refusal(producer.end(true).await)? {
            Some(_) => stage.tally.timed_out.add(1),
            None => stage.tally.ended(true),
        }
        let mut producer = Producer::transactional(stage.connect(ID).await?, ID, HANGING_MS).await?;
        for _ in 0..10 {
            producer.send(&audit, vec!["ended in time".to_owned()]).await?;
            producer.end(true).await?;
            stage.tally.ended(true);
            sleep(Duration::from_secs(1)).await;
        }
    }
}

/// Two producers with one id: the second fences the first, whose requests are refused from then on.
async fn share_an_id(stage: Arc<Stage>) -> Result<Infallible, Failure> {
    const ID: &str = "demo-shared-id";
    const TIMEOUT_MS: i32 = 30_000;
    let mut ticks = every(Duration::from_secs(3));
    loop {
        ticks.tick().await;
        let (here, there) = (pick(&stage.payments, 0), pick(&stage.payments, 1));
        let mut first = Producer::transactional(stage.connect(ID).await?, ID, TIMEOUT_MS).await?;
        first.send(&here, vec!["of the first".to_owned()]).await?;
        let mut second = Producer::transactional(stage.connect(ID).await?, ID, TIMEOUT_MS).await?;
        stage.tally.aborted.add(1);
        second.send(&here, vec!["of the second".to_owned()]).await?;
        for refused in
            [refusal(first.send(&here, vec!["of nobody".to_owned()]).await)?, refusal(first.end(true).await)?]
        {
            stage.tally.fenced.add(u64::from(refused.is_some()));
        }
        second.end(true).await?;
        stage.tally.ended(true);
        // A batch that comes late, after its transaction has ended. A broker that takes it must be told of an end.
        match refusal(second.send_unannounced(&there, vec!["too late".to_owned()]).await)? {
            Some(_) => stage.tally.stray.add(1),
            None => {
                second.send(&there, vec!["too late".to_owned()]).await?;
                second.end(false).await?;
                stage.tally.ended(false);
            }
        }
    }
}

/// Sends one batch in five twice, and one in twenty with a sequence too far ahead.
async fn stutter(stage: Arc<Stage>) -> Result<Infallible, Failure> {
    const AHEAD: i32 = 7;
    let mut producer = Producer::idempotent(stage.connect("demo-stutter").await?).await?;
    let mut ticks = every(Duration::from_millis(250));
    let part = pick(&stage.payments, 2);
    loop {
        for n in 0..20 {
            ticks.tick().await;
            let value = vec!["stuttered".to_owned()];
            if n % 5 == 1 {
                producer.send_twice(&part, value).await?;
                stage.tally.sent_twice.add(1);
            } else if n == 3 {
                producer.skip(&part, AHEAD);
                let refused = refusal(producer.send(&part, value).await)?;
                stage.tally.out_of_order.add(u64::from(refused.is_some()));
                producer.skip(&part, -AHEAD);
            } else {
                producer.send(&part, value).await?;
            }
        }
    }
}

/// The code of a refusal, which is what was asked for; any other failure is one.
fn refusal<T>(outcome: Result<T, Failure>) -> Result<Option<i16>, Failure> {
    match outcome {
        Ok(_) => Ok(None),
        Err(failure) => failure.code().map(Some).ok_or(failure),
    }
}

//! Those who do it right: orders come in, are settled in transactions that carry the group's offsets, and are paid.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::follower::Follower;
use super::forever;
use super::stage::{Stage, every, pick};
use crate::client::{Failure, Isolation, Part, Producer, Read, is_over};

const TIMEOUT_MS: i32 = 30_000;
const SETTLEMENT: &str = "demo-settlement";

/// Starts them.
pub(super) fn enter(stage: &Arc<Stage>, actors: &mut JoinSet<()>) {
    actors.spawn(forever(Arc::clone(stage), web_shop));
    actors.spawn(forever(Arc::clone(stage), branch));
    for id in ["demo-payer-1", "demo-payer-2"] {
        actors.spawn(forever(Arc::clone(stage), move |stage| pay(stage, id)));
    }
    for id in ["demo-settler-1", "demo-settler-2"] {
        actors.spawn(forever(Arc::clone(stage), move |stage| settle(stage, id)));
    }
}

/// Orders of a producer without any guarantee: 40 a second.
async fn web_shop(stage: Arc<Stage>) -> Result<Infallible, Failure> {
    let mut producer = Producer::plain(stage.connect("demo-web-shop").await?);
    let mut ticks = every(Duration::from_millis(100));
    for n in 0_usize.. {
        ticks.tick().await;
        let orders = (0..4).map(|item| format!("{{\"order\":\"web-{n}-{item}\",\"cents\":{}}}", 100 + n % 900));
        producer.send(&pick(&stage.orders, n), orders.collect()).await?;
    }
    Err(counted_out())
}

/// Orders of an idempotent producer: 4 a second.
async fn branch(stage: Arc<Stage>) -> Result<Infallible, Failure> {
    let mut producer = Producer::idempotent(stage.connect("demo-branch").await?).await?;
    let mut ticks = every(Duration::from_millis(250));
    for n in 0_usize.. {
        ticks.tick().await;
        let order = format!("{{\"order\":\"branch-{n}\",\"cents\":{}}}", 500 + n % 100);
        producer.send(&pick(&stage.orders, n), vec![order]).await?;
    }
    Err(counted_out())
}

/// Short transactions over two topics, one in eight aborted: 12 a second.
async fn pay(stage: Arc<Stage>, id: &'static str) -> Result<Infallible, Failure> {
    let mut producer = Producer::transactional(stage.connect(id).await?, id, TIMEOUT_MS).await?;
    let mut ticks = every(Duration::from_millis(80));
    for n in 0_usize.. {
        ticks.tick().await;
        let payment = format!("{{\"payment\":\"{id}-{n}\",\"cents\":{}}}", 100 + n % 900);
        producer.send(&pick(&stage.payments, n), vec![payment]).await?;
        producer.send(&pick(&stage.audit, 0), vec![format!("{id} {n}")]).await?;
        let commit = n % 8 != 7;
        producer.end(commit).await?;
        stage.tally.ended(commit);
    }
    Err(counted_out())
}

/// Reads orders, writes payments, and commits the offsets in the same transaction; one in ten is aborted and done again.
async fn settle(stage: Arc<Stage>, id: &'static str) -> Result<Infallible, Failure> {
    let mut producer = Producer::transactional(stage.connect(id).await?, id, TIMEOUT_MS).await?;
    let mut orders = Follower::new(&stage, SETTLEMENT, &stage.orders, Isolation::ReadCommitted).await?;
    for n in 0_usize.. {
        let reads: Vec<Read> = orders.poll(Duration::from_millis(300)).await?;
        let settled: u64 = reads.iter().map(|read| read.shown).sum();
        if settled == 0 {
            orders.advance(&reads);
            continue;
        }
        stage.tally.read(Isolation::ReadCommitted, settled);
        producer.send(&pick(&stage.payments, n), vec![format!("{{\"settled\":{settled},\"by\":\"{id}\"}}")]).await?;
        let offsets: Vec<(Part, i64)> = reads.iter().map(|read| (read.part.clone(), read.next)).collect();
        match producer.send_offsets(SETTLEMENT, orders.member(), &offsets).await {
            Err(failure) if is_over(&failure) => {
                producer.end(false).await?;
                stage.tally.ended(false);
                orders.join().await?;
                continue;
            }
            sent => sent?,
        }
        let commit = n % 10 != 9;
        producer.end(commit).await?;
        stage.tally.ended(commit);
        if commit {
            orders.advance(&reads);
        }
    }
    Err(counted_out())
}

/// What is said when a number has no next one.
fn counted_out() -> Failure {
    Failure::Unreachable("counted to the end of all numbers".to_owned())
}

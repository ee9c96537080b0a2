//! An application of the crate rdkafka: transactions, a group, an idempotent producer, the admin client.
//!
//! usage: rdkafka-client CRATE_VERSION [SCENARIO...]; the broker is in the environment, as `BOOTSTRAP`.

mod admin;
mod app;
mod scenarios;

use std::future::Future;
use std::io::Write;
use std::pin::Pin;
use std::time::Duration;

use app::{App, Outcome};

type Scenario = fn(&App) -> Pin<Box<dyn Future<Output = Outcome> + '_>>;

const SCENARIO_S: u64 = 90;

const SCENARIOS: [(&str, Scenario); 8] = [
    ("commit", |app| Box::pin(scenarios::commit(app))),
    ("abort", |app| Box::pin(scenarios::abort(app))),
    ("offsets", |app| Box::pin(scenarios::offsets(app))),
    ("isolation", |app| Box::pin(scenarios::isolation(app))),
    ("fencing", |app| Box::pin(scenarios::fencing(app))),
    ("timeout", |app| Box::pin(scenarios::timeout(app))),
    ("idempotence", |app| Box::pin(scenarios::idempotence(app))),
    ("admin", |app| Box::pin(admin::admin(app))),
];

#[tokio::main]
async fn main() -> Result<(), app::Wrong> {
    let mut words = std::env::args().skip(1);
    let version = words.next().ok_or("which version of the crate?")?;
    let named = words.collect::<Vec<_>>();
    let bootstrap = std::env::var("BOOTSTRAP")?;
    let mut out = std::io::stdout();
    writeln!(out, "version rdkafka {version} librdkafka {}", rdkafka::util::get_rdkafka_version().1)?;
    for (name, play) in SCENARIOS.iter().filter(|(name, _)| named.is_empty() || named.iter().any(|one| one == name)) {
        let app = App::new(&bootstrap, name)?;
        let played = tokio::time::timeout(Duration::from_secs(SCENARIO_S), play(&app)).await;
        match played {
            Ok(Ok(figures)) => writeln!(out, "pass {name} {figures}")?,
            Ok(Err(wrong)) => writeln!(out, "FAIL {name} {wrong}")?,
            Err(_) => writeln!(out, "FAIL {name} not done after {SCENARIO_S} s")?,
        }
    }
    writeln!(out, "end")?;
    Ok(())
}

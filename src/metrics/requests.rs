//! Series by request kind.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use prometheus::{Error, Histogram, IntCounter, IntCounterVec};

use super::BUCKETS;
use super::series::Table;
use crate::engine::Refusal;

/// The API of a request that is not in the table; it cannot take a served one's name.
const UNKNOWN: &str = "unknown";

#[derive(Debug)]
struct Api {
    name: &'static str,
    requests: IntCounter,
    duration: Histogram,
}

/// Requests by API.
#[derive(Debug)]
pub(super) struct Requests {
    apis: BTreeMap<i16, Api>,
    unknown: Api,
    errors: IntCounterVec,
    queue: Histogram,
}

impl Requests {
    /// `apis`: the key and Kafka's name of every API that is served.
    pub(super) fn new(table: &Table, apis: &[(i16, &'static str)]) -> Result<Self, Error> {
        let requests = table.open_counters("requests_total", "Requests by API", &["api"])?;
        let help = "Time from a request being read to its answer being ready";
        let duration = table.open_histograms(("request_duration_seconds", help), &["api"], BUCKETS)?;
        // Not filled in from the start: APIs times refusals are thousands. Bounded all the same, by those two tables.
        let errors = table.open_counters("request_errors_total", "Errors answered, by API", &["api", "error"])?;
        let api = |name: &'static str| -> Result<Api, Error> {
            let requests = requests.get_metric_with_label_values(&[name])?;
            Ok(Api { name, requests, duration: duration.get_metric_with_label_values(&[name])? })
        };
        let known = apis.iter().map(|(key, name)| Ok((*key, api(name)?))).collect::<Result<_, Error>>()?;
        let queue = "Time a request waited for room in memory before it was read";
        let queue = table.histogram("request_queue_seconds", queue, BUCKETS)?;
        Ok(Self { apis: known, unknown: api(UNKNOWN)?, errors, queue })
    }

    pub(super) fn answered(&self, key: i16, took: Duration) {
        let api = self.api(key);
        api.requests.inc();
        api.duration.observe(took.as_secs_f64());
    }

    pub(super) fn refused(&self, key: i16, refusal: Refusal) {
        if let Ok(series) = self.errors.get_metric_with_label_values(&[self.api(key).name, &snake(refusal)]) {
            series.inc();
        }
    }

    pub(super) fn queued(&self, waited: Duration) {
        self.queue.observe(waited.as_secs_f64());
    }

    fn api(&self, key: i16) -> &Api {
        self.apis.get(&key).unwrap_or(&self.unknown)
    }
}

/// `ConcurrentTransactions` as `concurrent_transactions`.
fn snake(refusal: Refusal) -> String {
    let mut camel = String::new();
    if write!(camel, "{refusal:?}").is_err() {
        return "other".to_owned();
    }
    let mut snake = String::new();
    for letter in camel.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

//! What the admin port shows and does, and what the edge's counters tell.

mod gauges;
mod late;
mod transactions;
mod watcher;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

pub(super) use late::watch_late;
pub(super) use watcher::Watcher;

use crate::config::{Config, ListenerName};
use crate::engine::{Offset, PartId};
use crate::http::v1::{Acted, Action, Blocked, Filter, ListenerShown, NotActed, Page, Transaction, Who};
use crate::http::{Admin, Pending, Readiness};
use crate::metrics::Metrics;
use crate::runtime::broker::Broker;
use crate::telemetry::Traces;

/// The broker as the admin port sees it.
pub(super) struct Ops {
    broker: Arc<Broker>,
    config: Arc<Config>,
    /// The port each listener got.
    bound: Vec<(ListenerName, u16)>,
    traces: Option<Arc<Traces>>,
    /// Watermarks at the last look.
    ends: Mutex<BTreeMap<PartId, Offset>>,
}

impl Ops {
    /// `bound`: the port each listener got.
    pub(super) fn new(
        broker: Arc<Broker>,
        config: Arc<Config>,
        (bound, traces): (Vec<(ListenerName, u16)>, Option<Arc<Traces>>),
    ) -> Self {
        Self { broker, config, bound, traces, ends: Mutex::default() }
    }
}

impl Admin for Ops {
    fn readiness(&self) -> Readiness {
        let router = self.broker.router();
        let mut reasons = router.partitions.damages();
        reasons.extend(router.why_broken().map(str::to_owned));
        reasons
            .extend(router.why_refusing().map(|why| format!("the ledger cannot store: {why}; make room on the disk")));
        // Too little room for records is no reason to take a broker away that serves all else: it is told as a warning.
        let ready = reasons.is_empty();
        reasons.extend(router.partitions.space().alarms());
        Readiness { ready, reasons }
    }

    fn before_scrape(&self) -> Pending<'_, ()> {
        Box::pin(async {
            self.broker.metrics().set_ready(self.readiness().ready);
            if let Some(traces) = &self.traces {
                self.broker.metrics().trace_spans_dropped(traces.take_dropped());
            }
            let ends = self.show_partitions();
            if let Ok(gauges) = self.broker.gauges().await {
                self.show_ledger(&gauges);
            }
            if let Ok(offsets) = self.broker.seen_offsets().await {
                self.show_lags(&ends, &offsets);
            }
        })
    }

    fn metrics(&self) -> &Metrics {
        self.broker.metrics()
    }

    fn transactions(&self, filter: Filter) -> Pending<'_, Option<Page<Transaction>>> {
        Box::pin(self.list(filter))
    }

    fn transaction(&self, id: String) -> Pending<'_, Result<Transaction, NotActed>> {
        Box::pin(self.show(id))
    }

    fn blocked(&self) -> Pending<'_, Option<Page<Blocked>>> {
        Box::pin(self.held_back())
    }

    fn listeners(&self) -> Vec<ListenerShown> {
        let shown = |(name, port): &(ListenerName, u16)| {
            let listener = self.config.listener(*name)?;
            Some(ListenerShown {
                name: name.as_str().to_owned(),
                bind: format!("{}:{port}", listener.bind.host),
                advertised: listener.advertised.at(*port).to_string(),
            })
        };
        self.bound.iter().filter_map(shown).collect()
    }

    fn act(&self, action: Action, id: String, who: Who) -> Pending<'_, Result<Acted, NotActed>> {
        Box::pin(self.carry_out(action, id, who))
    }
}

//! What the process says of itself: lines on standard error, and traces to a collector if one is set.

mod collector;
mod export;
mod request;
mod traceparent;
mod transactions;

use std::io::{self, IsTerminal};
use std::sync::Arc;

use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tracing::Subscriber;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, fmt};

use crate::config::{Config, Log, LogFormat};
use export::Counts;
pub use request::{Traces, stage};

/// The target of spans that are sent to the collector. Lines of the log do not show them.
const SENT: &str = "oncelog::sent";
/// The name under which the collector is told of our spans.
const SCOPE: &str = "oncelog";

/// What has been started, to be ended when nothing runs any more.
pub struct Telemetry {
    tracing: Option<(SdkTracerProvider, Arc<Traces>)>,
    counts: Arc<Counts>,
}

/// Starts logging and tracing for the whole process. To be called once, before anything logs.
///
/// # Errors
/// In words, if `log.level` cannot be read, the exporter cannot be made, or logging has been started before.
pub fn init(config: &Config) -> Result<Telemetry, String> {
    let log = &config.log;
    let filter = EnvFilter::try_new(&log.level).map_err(|error| format!("log.level {:?}: {error}", log.level))?;
    let counts = Arc::new(Counts::default());
    let cannot = |error| format!("logging cannot start: {error}");
    let Some(endpoint) = &config.tracing.endpoint else {
        let lines = lines(log, false).with_filter(filter);
        tracing_subscriber::registry().with(lines).try_init().map_err(cannot)?;
        return Ok(Telemetry { tracing: None, counts });
    };
    let provider = export::provider(endpoint, config.tracing.sample_ratio, &counts)?;
    let tracer = provider.tracer(SCOPE);
    let lines = lines(log, true).with_filter(filter).with_filter(filter_fn(|shown| shown.target() != SENT));
    tracing_subscriber::registry().with(lines).with(spans(tracer.clone())).try_init().map_err(cannot)?;
    tracing::info!(%endpoint, "traces are sent");
    let traces = Arc::new(Traces::new(tracer, Arc::clone(&counts)));
    Ok(Telemetry { tracing: Some((provider, traces)), counts })
}

/// Lines for people, or JSON; with the spans they were written in, once there are any.
fn lines<S>(log: &Log, in_spans: bool) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    // A line that cannot be written is dropped. Reporting it would write to the same closed pipe, and that panics.
    let lines = fmt::layer().with_writer(io::stderr).log_internal_errors(false);
    match log.format {
        LogFormat::Text => Box::new(lines.with_ansi(io::stderr().is_terminal())),
        LogFormat::Json => {
            Box::new(lines.json().flatten_event(true).with_current_span(in_spans).with_span_list(!in_spans))
        }
    }
}

/// Spans of ours to OpenTelemetry, and with them what is logged in them.
fn spans<S>(tracer: SdkTracer) -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_context_activation(false)
        .with_filter(filter_fn(|about| {
            if about.is_span() { about.target() == SENT } else { *about.level() <= tracing::Level::INFO }
        }))
}

impl Telemetry {
    /// Whoever keeps traces, if they are kept.
    #[must_use]
    pub fn traces(&self) -> Option<Arc<Traces>> {
        self.tracing.as_ref().map(|(_, traces)| Arc::clone(traces))
    }

    /// Sends what is left, and waits for that within a bound. Not to be called by a thread that drives tasks: it blocks.
    pub fn finish(self) {
        let Some((provider, traces)) = self.tracing else { return };
        traces.stop();
        if let Err(error) = provider.shutdown_with_timeout(export::FAREWELL) {
            let lost = self.counts.queued();
            tracing::warn!(%error, lost, "traces not delivered before the end");
        }
    }
}

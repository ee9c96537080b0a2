//! Spans on their way out: a bounded queue, a thread that sends batches, and what becomes of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use opentelemetry::{Context, Key, KeyValue, Value};
use opentelemetry_otlp::{SpanExporter as Otlp, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider, Span, SpanData, SpanExporter, SpanProcessor,
};

use super::collector::Collector;
use crate::config::{Endpoint, Ratio};

/// How long the process waits at its end for spans to be taken.
pub(super) const FAREWELL: Duration = Duration::from_secs(5);
/// Spans that wait to be sent, unless the environment says otherwise; a few megabytes.
const QUEUE: usize = 4_096;
/// Where the environment says so.
const QUEUE_VARIABLE: &str = "OTEL_BSP_MAX_QUEUE_SIZE";

/// What becomes of spans.
#[derive(Debug, Default)]
pub(super) struct Counts {
    queued: AtomicUsize,
    dropped: AtomicU64,
    /// Whether the last batch was not taken; its change is said once.
    unreachable: AtomicBool,
}

impl Counts {
    /// Spans that are on their way.
    pub(super) fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    /// Spans, or transactions that were not followed, lost since this was asked last.
    pub(super) fn take_dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }

    /// Some will never arrive.
    pub(super) fn drop_some(&self, count: usize) {
        self.dropped.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn enter(&self, most: usize) -> bool {
        let entered = self.queued.fetch_add(1, Ordering::Relaxed) < most;
        if !entered {
            self.leave(1);
            self.drop_some(1);
        }
        entered
    }

    fn leave(&self, count: usize) {
        self.queued.fetch_sub(count, Ordering::Relaxed);
    }

    fn sent(&self, count: usize, result: &OTelSdkResult) {
        if let Err(error) = result {
            self.drop_some(count);
            if !self.unreachable.swap(true, Ordering::Relaxed) {
                tracing::warn!(%error, "the collector of traces cannot be reached; said once until it can be");
            }
        } else if self.unreachable.swap(false, Ordering::Relaxed) {
            tracing::info!("the collector of traces can be reached again");
        }
    }
}

/// Everything that sends spans to `endpoint`, under the `OTEL_…` variables that have a meaning for it.
///
/// # Errors
/// What cannot be had, in words.
pub(super) fn provider(
    endpoint: &Endpoint,
    ratio: Option<Ratio>,
    counts: &Arc<Counts>,
) -> Result<SdkTracerProvider, String> {
    let cannot = |error: String| format!("traces cannot be sent to {endpoint}: {error}");
    let client = Collector::new().map_err(|error| cannot(error.to_string()))?;
    let exporter = Otlp::builder()
        .with_http()
        .with_http_client(client)
        .with_endpoint(endpoint.as_str())
        .build()
        .map_err(|error| cannot(error.to_string()))?;
    let most = std::env::var(QUEUE_VARIABLE).ok().and_then(|set| set.trim().parse().ok()).unwrap_or(QUEUE);
    let watched = Watched { exporter, counts: Arc::clone(counts) };
    let config = BatchConfigBuilder::default().with_max_queue_size(most).build();
    let batches = BatchSpanProcessor::builder(watched).with_batch_config(config).build();
    let queue = Queue { batches, most, counts: Arc::clone(counts) };
    let mut provider = SdkTracerProvider::builder().with_resource(resource()).with_span_processor(queue);
    if let Some(ratio) = ratio {
        let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(ratio.share())));
        provider = provider.with_sampler(sampler);
    }
    Ok(provider.build())
}

/// Who we are. What `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` say comes first.
fn resource() -> Resource {
    let said = Resource::builder().build();
    let own = [
        ("service.name", "oncelog".to_owned()),
        ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("service.instance.id", uuid::Uuid::new_v4().to_string()),
    ];
    let nameless = |value: Option<Value>| value.is_none_or(|value| value.as_str().starts_with("unknown_service"));
    let missing = own.into_iter().filter(|(key, _)| nameless(said.get(&Key::from_static_str(key))));
    let missing = missing.map(|(key, value)| KeyValue::new(key, value));
    Resource::builder().with_attributes(missing.collect::<Vec<_>>()).build()
}

/// Takes spans from whoever ends them, never waits, and counts those there is no room for.
#[derive(Debug)]
struct Queue {
    batches: BatchSpanProcessor,
    most: usize,
    counts: Arc<Counts>,
}

impl SpanProcessor for Queue {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.batches.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if self.counts.enter(self.most) {
            self.batches.on_end(span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.batches.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.batches.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.batches.set_resource(resource);
    }
}

/// Sends batches, and says once when they are not taken and once when they are again.
#[derive(Debug)]
struct Watched {
    exporter: Otlp,
    counts: Arc<Counts>,
}

impl SpanExporter for Watched {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len();
        let result = self.exporter.export(batch).await;
        self.counts.leave(count);
        self.counts.sent(count, &result);
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

#[cfg(test)]
mod tests;

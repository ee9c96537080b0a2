//! The admin port: metrics, health, and what operators ask, over HTTP/1.1.
//!
//! Nothing here can hold the broker up: requests have no body worth reading, heads are small and must come in time, and
//! there are only so many connections.

mod ask;
mod health;
pub mod probe;
mod routes;
pub mod txn;
pub mod v1;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::metrics::Metrics;
use v1::{Acted, Action, Blocked, Filter, ListenerShown, NotActed, Page, Transaction, Who};

/// An answer that may take a moment.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What the admin port needs from the broker. Called often and from any thread; must not block.
pub trait Admin: Send + Sync {
    /// Whether clients can be served, and if not, why; also what an operator should look after though they are.
    fn readiness(&self) -> Readiness;

    /// Sets the gauges that are read off the broker's state, just before they are shown.
    fn before_scrape(&self) -> Pending<'_, ()>;

    /// The broker's metrics.
    fn metrics(&self) -> &Metrics;

    /// Transactional ids and their transactions, the one open for longest first; `None` while the broker stops.
    fn transactions(&self, filter: Filter) -> Pending<'_, Option<Page<Transaction>>>;

    /// One of them.
    fn transaction(&self, id: String) -> Pending<'_, Result<Transaction, NotActed>>;

    /// Partitions whose read_committed readers are held back, and by whom; the one held back for longest first;
    /// `None` while the broker stops.
    fn blocked(&self) -> Pending<'_, Option<Page<Blocked>>>;

    /// The doors, and what clients are told behind them.
    fn listeners(&self) -> Vec<ListenerShown>;

    /// Does what an operator asks for.
    fn act(&self, action: Action, id: String, who: Who) -> Pending<'_, Result<Acted, NotActed>>;
}

/// Whether clients can be served.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Readiness {
    /// All is well.
    pub ready: bool,
    /// What is missing or out of order, one reason a line. May be given while ready, as a warning.
    pub reasons: Vec<String>,
}

/// Connections at one time; the next one waits in the system's queue.
const MAX_CONNECTIONS: usize = 64;
/// Bytes a request's head may have.
const MAX_HEAD_BYTES: usize = 16_384;
/// How long a head may take to come, which is also how long a kept connection may be idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a whole connection may live, so that a reader that does not read cannot keep its place.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(600);
/// How long open requests are given at the end.
const FAREWELL: Duration = Duration::from_secs(2);
/// Pause after a failed accept: out of descriptors, most likely, which passes.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop` says true, then gives open requests a moment to end.
pub async fn serve(listener: TcpListener, admin: Arc<dyn Admin>, mut stop: watch::Receiver<bool>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        tokio::select! {
            (place, accepted) = next => match accepted {
                Ok((socket, peer)) => {
                    let (admin, stop) = (Arc::clone(&admin), stop.clone());
                    connections.spawn(async move {
                        connection((socket, peer), admin, stop).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "the admin port could not accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
            () = stopped(&mut stop) => break,
        }
    }
    let all_over = async { while connections.join_next().await.is_some() {} };
    if timeout(FAREWELL, all_over).await.is_err() {
        connections.shutdown().await;
    }
}

/// Comes back once `stop` says true, or nobody is left who could say it.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|over| *over).await.is_err() {
        tracing::debug!("the admin port ends because its owner is gone");
    }
}

async fn connection((socket, peer): (TcpStream, SocketAddr), admin: Arc<dyn Admin>, mut stop: watch::Receiver<bool>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let admin = Arc::clone(&admin);
        async move { Ok::<_, Infallible>(routes::route(&admin, &request, peer).await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(64)
        .serve_connection(TokioIo::new(socket), service);
    let mut serving = pin!(serving);
    let whole = async {
        tokio::select! {
            ended = serving.as_mut() => return ended,
            () = stopped(&mut stop) => serving.as_mut().graceful_shutdown(),
        }
        serving.await
    };
    match timeout(CONNECTION_TIMEOUT, whole).await {
        Ok(Ok(())) => {}
        // A scraper that hangs up in the middle is not worth more.
        Ok(Err(error)) => tracing::debug!(%error, "a connection to the admin port ended early"),
        Err(_) => tracing::debug!("a connection to the admin port was open too long"),
    }
}

fn text(status: StatusCode, body: &str) -> Response<Full<Bytes>> {
    answer(status, "text/plain; charset=utf-8", body.to_owned())
}

fn answer(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests;

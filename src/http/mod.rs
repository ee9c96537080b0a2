//! The admin port: metrics and health over HTTP/1.1.
//!
//! Nothing here can hold the broker up: requests have no body worth reading, heads are small and must come in time, and
//! there are only so many connections.

mod health;
pub mod probe;

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::metrics::{self, Metrics};

/// What the admin port needs from the broker. Called often and from any thread; must not block.
pub trait Admin: Send + Sync {
    /// Whether clients can be served, and if not, why; also what an operator should look after though they are.
    fn readiness(&self) -> Readiness;

    /// Sets the gauges that are read off the broker's state, just before they are shown.
    fn before_scrape(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// The broker's metrics.
    fn metrics(&self) -> &Metrics;
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
                Ok((socket, _)) => {
                    let (admin, stop) = (Arc::clone(&admin), stop.clone());
                    connections.spawn(async move {
                        connection(socket, admin, stop).await;
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

async fn connection(socket: TcpStream, admin: Arc<dyn Admin>, mut stop: watch::Receiver<bool>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let admin = Arc::clone(&admin);
        async move { Ok::<_, Infallible>(route(&*admin, request.method(), request.uri().path()).await) }
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

/// The pages there are.
enum Page {
    Metrics,
    Live,
    Ready,
}

/// What a path answers.
async fn route(admin: &dyn Admin, method: &Method, path: &str) -> Response<Full<Bytes>> {
    let page = match path {
        "/metrics" => Page::Metrics,
        "/livez" => Page::Live,
        "/readyz" => Page::Ready,
        _ => {
            return text(StatusCode::NOT_FOUND, "not found: /metrics, /livez and /readyz are here\n");
        }
    };
    if method != Method::GET {
        let mut refused = text(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered here\n");
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
        return refused;
    }
    match page {
        Page::Metrics => scrape(admin).await,
        Page::Live => health::live(),
        Page::Ready => health::ready(&admin.readiness()),
    }
}

async fn scrape(admin: &dyn Admin) -> Response<Full<Bytes>> {
    admin.before_scrape().await;
    match admin.metrics().render() {
        Ok(body) => answer(StatusCode::OK, metrics::CONTENT_TYPE, body),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &format!("metrics cannot be shown: {error}\n")),
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

//! The way to the collector: one HTTP request at a time, made by the thread that exports.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, HOST, HeaderValue};
use hyper_util::rt::TokioIo;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

/// How long an answer may be; it says which spans were not taken, if any.
const ANSWER_BYTES: usize = 64 << 10;
/// How long one request may take, unless the environment says otherwise.
const PATIENCE: Duration = Duration::from_secs(10);
/// Where the environment says so, in milliseconds.
const TIMEOUTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"];

/// A client whose runtime is its own: whatever becomes of the broker's, what is left can still be sent.
#[derive(Debug)]
pub(super) struct Collector {
    runtime: Runtime,
    patience: Duration,
}

impl Collector {
    /// A client that has not spoken to anybody yet.
    ///
    /// # Errors
    /// The system's, if it has no room for another event loop.
    pub(super) fn new() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let set = TIMEOUTS.iter().find_map(|name| std::env::var(name).ok()?.trim().parse().ok());
        Ok(Self { runtime, patience: set.map_or(PATIENCE, Duration::from_millis) })
    }
}

type Answer<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for Collector {
    /// Done when it comes back: the thread that calls has nothing else to do.
    fn send_bytes<'a, 'f>(&'a self, request: Request<Bytes>) -> Answer<'f>
    where
        'a: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            let exchange = async { tokio::time::timeout(self.patience, exchange(request)).await };
            self.runtime.block_on(exchange).map_err(|_| HttpError::from(format!("no answer in {:?}", self.patience)))?
        })
    }
}

async fn exchange(mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let uri = request.uri().clone();
    let authority = uri.authority().ok_or("the address has no host")?;
    let host = authority.host().trim_matches(['[', ']']);
    let stream = TcpStream::connect((host, authority.port_u16().unwrap_or(80))).await?;
    *request.uri_mut() = uri.path_and_query().map_or("/", |path| path.as_str()).parse()?;
    request.headers_mut().insert(HOST, HeaderValue::from_str(authority.as_str())?);
    request.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let mut connection = pin!(connection);
    let mut answer = pin!(async move {
        let (head, body) = sender.send_request(request.map(Full::new)).await?.into_parts();
        let body = Limited::new(body, ANSWER_BYTES).collect().await?.to_bytes();
        Ok(Response::from_parts(head, body))
    });
    tokio::select! {
        biased;
        answer = &mut answer => answer,
        // Over, with or without an error: the answer knows which.
        _ended = &mut connection => answer.await,
    }
}

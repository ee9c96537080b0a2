//! Alive, and ready or why not.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Response, StatusCode};

use super::{Readiness, text};

/// Being able to say so is all that is asked. It depends on nothing else: a broker that is not ready must not be
/// restarted for it.
pub(super) fn live() -> Response<Full<Bytes>> {
    text(StatusCode::OK, "alive\n")
}

/// 200 when clients can be served, else 503; each reason, or warning, on a line of its own.
pub(super) fn ready(readiness: &Readiness) -> Response<Full<Bytes>> {
    let (status, first) =
        if readiness.ready { (StatusCode::OK, "ready\n") } else { (StatusCode::SERVICE_UNAVAILABLE, "not ready\n") };
    let reasons = readiness.reasons.iter().flat_map(|reason| ["- ", reason, "\n"]);
    text(status, &std::iter::once(first).chain(reasons).collect::<String>())
}

//! Which address answers what.

use std::net::SocketAddr;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use super::v1::{Action, Filter, Who, acted, decoded, json, problem};
use super::{Admin, answer, health, text};
use crate::metrics;

/// Names whoever acts. A page in a browser cannot set it for another site without asking first, which is never answered.
const OPERATOR: &str = "x-oncelog-operator";
/// Characters of an operator's name that are kept.
const OPERATOR_CHARS: usize = 128;

/// The pages there are.
#[derive(Debug, PartialEq, Eq)]
enum Page<'a> {
    Metrics,
    Live,
    Ready,
    Transactions,
    Transaction(&'a str),
    Act(&'a str, Action),
    Blocked,
    Listeners,
}

impl<'a> Page<'a> {
    fn at(path: &'a str) -> Option<Self> {
        Some(match path {
            "/metrics" => Self::Metrics,
            "/livez" => Self::Live,
            "/readyz" => Self::Ready,
            "/v1/transactions" => Self::Transactions,
            "/v1/partitions/blocked" => Self::Blocked,
            "/v1/listeners" => Self::Listeners,
            _ => return Self::of_transaction(path.strip_prefix("/v1/transactions/")?),
        })
    }

    fn of_transaction(rest: &'a str) -> Option<Self> {
        match rest.split_once('/') {
            None if rest.is_empty() => None,
            None => Some(Self::Transaction(rest)),
            Some((id, "abort")) => Some(Self::Act(id, Action::Abort)),
            Some((id, "fence")) => Some(Self::Act(id, Action::Fence)),
            Some(_) => None,
        }
    }

    fn method(&self) -> Method {
        if matches!(self, Self::Act(..)) { Method::POST } else { Method::GET }
    }
}

/// Answers one request. Bodies are not read.
pub(super) async fn route<B>(admin: &dyn Admin, request: &Request<B>, peer: SocketAddr) -> Response<Full<Bytes>>
where
    B: Sync,
{
    let Some(page) = Page::at(request.uri().path()) else {
        return text(StatusCode::NOT_FOUND, NOT_FOUND);
    };
    let method = page.method();
    if request.method() != method {
        let mut refused = text(StatusCode::METHOD_NOT_ALLOWED, &format!("only {method} is answered here\n"));
        let allowed = if method == Method::POST { "POST" } else { "GET" };
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
        return refused;
    }
    match page {
        Page::Metrics => scrape(admin).await,
        Page::Live => health::live(),
        Page::Ready => health::ready(&admin.readiness()),
        Page::Transactions => transactions(admin, request.uri().query().unwrap_or_default()).await,
        Page::Transaction(id) => transaction(admin, id).await,
        Page::Blocked => json(StatusCode::OK, &admin.blocked().await),
        Page::Listeners => json(StatusCode::OK, &admin.listeners()),
        Page::Act(id, action) => act(admin, (id, action), (request, peer)).await,
    }
}

const NOT_FOUND: &str = "not found: /metrics, /livez, /readyz, /v1/transactions, /v1/partitions/blocked and /v1/listeners \
                         are here\n";

async fn scrape(admin: &dyn Admin) -> Response<Full<Bytes>> {
    admin.before_scrape().await;
    match admin.metrics().render() {
        Ok(body) => answer(StatusCode::OK, metrics::CONTENT_TYPE, body),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &format!("metrics cannot be shown: {error}\n")),
    }
}

async fn transactions(admin: &dyn Admin, query: &str) -> Response<Full<Bytes>> {
    let filter = match Filter::of(query) {
        Ok(filter) => filter,
        Err(why) => return problem(StatusCode::BAD_REQUEST, why),
    };
    match admin.transactions(filter).await {
        Some(page) => json(StatusCode::OK, &page),
        None => problem(StatusCode::SERVICE_UNAVAILABLE, "the broker is about to stop"),
    }
}

async fn transaction(admin: &dyn Admin, id: &str) -> Response<Full<Bytes>> {
    let id = match decoded(id) {
        Ok(id) => id,
        Err(why) => return problem(StatusCode::BAD_REQUEST, why),
    };
    match admin.transaction(id).await {
        Some(transaction) => json(StatusCode::OK, &transaction),
        None => problem(StatusCode::NOT_FOUND, "there is no such transactional id"),
    }
}

async fn act<B: Sync>(
    admin: &dyn Admin,
    (id, action): (&str, Action),
    (request, peer): (&Request<B>, SocketAddr),
) -> Response<Full<Bytes>> {
    let named = request.headers().get(OPERATOR).and_then(|name| name.to_str().ok()).map(str::trim);
    let Some(operator) = named.filter(|name| !name.is_empty()) else {
        let why = format!("say who asks, in the header {OPERATOR}: it goes into the log");
        return problem(StatusCode::FORBIDDEN, why);
    };
    let operator = operator.chars().take(OPERATOR_CHARS).collect();
    match decoded(id) {
        Ok(id) => acted(admin.act(action, id, Who { operator, address: peer.to_string() }).await),
        Err(why) => problem(StatusCode::BAD_REQUEST, why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let cases = [
            ("/metrics", Some(Page::Metrics)),
            ("/v1/transactions", Some(Page::Transactions)),
            ("/v1/transactions/", None),
            ("/v1/transactions/a%2Fb", Some(Page::Transaction("a%2Fb"))),
            ("/v1/transactions/a/abort", Some(Page::Act("a", Action::Abort))),
            ("/v1/transactions/a/fence", Some(Page::Act("a", Action::Fence))),
            ("/v1/transactions/a/commit", None),
            ("/v1/transactions/a/abort/", None),
            ("/v1/partitions/blocked", Some(Page::Blocked)),
            ("/v1/listeners", Some(Page::Listeners)),
            ("/", None),
        ];
        for (path, page) in cases {
            assert_eq!(Page::at(path), page, "{path}");
        }
    }

    #[test]
    fn filters() {
        let filter = |query| Filter::of(query);
        let all = filter("").unwrap();
        assert!(all.takes("Ongoing", "a") && all.limit == 1_000);
        let some =
            filter("state=ongoing&state=PrepareCommit&prefix=a%20b+c&open_longer_than_ms=5&limit=99999").unwrap();
        assert!(some.takes("Ongoing", "a b c d") && some.takes("PrepareCommit", "a b c"));
        assert!(!some.takes("Empty", "a b c") && !some.takes("Ongoing", "a b"));
        assert_eq!((some.open_longer_than_ms, some.limit), (Some(5), 10_000));
        for wrong in ["state=open", "limit=x", "age=5", "prefix=%FF"] {
            assert!(filter(wrong).is_err(), "{wrong}");
        }
    }
}

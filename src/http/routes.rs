//! Which address answers what.

use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, HeaderValue, ORIGIN};
use hyper::{Method, Request, Response, StatusCode};

use super::v1::{Action, Filter, Who, acted, decoded, json, not_acted, problem};
use super::{Admin, answer, health, text};
use crate::metrics;

/// Names whoever acts.
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
pub(super) async fn route<B>(shared: &Arc<dyn Admin>, request: &Request<B>, peer: SocketAddr) -> Response<Full<Bytes>>
where
    B: Sync,
{
    let admin = &**shared;
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
        Page::Blocked => match admin.blocked().await {
            Some(page) => json(StatusCode::OK, &page),
            None => problem(StatusCode::SERVICE_UNAVAILABLE, STOPS),
        },
        Page::Listeners => json(StatusCode::OK, &admin.listeners()),
        Page::Act(id, action) => act(shared, (id, action), (request, peer)).await,
    }
}

const NOT_FOUND: &str = "not found: /metrics, /livez, /readyz, /v1/transactions, /v1/partitions/blocked and /v1/listeners \
                         are here\n";

const STOPS: &str = "the broker is about to stop";

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
        None => problem(StatusCode::SERVICE_UNAVAILABLE, STOPS),
    }
}

async fn transaction(admin: &dyn Admin, id: &str) -> Response<Full<Bytes>> {
    let id = match decoded(id) {
        Ok(id) => id,
        Err(why) => return problem(StatusCode::BAD_REQUEST, why),
    };
    match admin.transaction(id).await {
        Ok(transaction) => json(StatusCode::OK, &transaction),
        Err(why) => not_acted(why),
    }
}

async fn act<B: Sync>(
    admin: &Arc<dyn Admin>,
    (id, action): (&str, Action),
    (request, peer): (&Request<B>, SocketAddr),
) -> Response<Full<Bytes>> {
    // Pages in a browser send it with every POST, whatever name they were reached by: nothing here is for them.
    if request.headers().contains_key(ORIGIN) {
        return problem(StatusCode::FORBIDDEN, "pages in a browser are not served");
    }
    let named = request.headers().get(OPERATOR).map(|name| String::from_utf8_lossy(name.as_bytes()).trim().to_owned());
    let Some(operator) = named.filter(|name| !name.is_empty()) else {
        let why = format!("say who asks, in the header {OPERATOR}: it goes into the log");
        return problem(StatusCode::FORBIDDEN, why);
    };
    let operator = operator.chars().take(OPERATOR_CHARS).collect();
    match decoded(id) {
        Ok(id) => {
            let (admin, who) = (Arc::clone(admin), Who { operator, address: peer.to_string() });
            // By itself: whoever asked may hang up, and what the ledger has been asked for is counted and told all the same.
            #[expect(clippy::disallowed_methods, reason = "it outlives its connection")]
            let acting = tokio::spawn(async move { admin.act(action, id, who).await });
            match acting.await {
                Ok(result) => acted(result),
                Err(_) => problem(StatusCode::SERVICE_UNAVAILABLE, STOPS),
            }
        }
        Err(why) => problem(StatusCode::BAD_REQUEST, why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ledger::show::Shown;

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
        assert!(all.states.is_empty() && all.limit == 1_000);
        let some =
            filter("state=ongoing&state=PrepareCommit&prefix=a%20b+c&open_longer_than_ms=5&limit=99999").unwrap();
        assert_eq!((&*some.states, &*some.prefix), (&[Shown::Ongoing, Shown::PrepareCommit][..], "a b c"));
        assert_eq!((some.open_longer_than_ms, some.limit), (Some(5), 10_000));
        for wrong in ["state=open", "limit=x", "age=5", "prefix=%FF"] {
            assert!(filter(wrong).is_err(), "{wrong}");
        }
    }
}

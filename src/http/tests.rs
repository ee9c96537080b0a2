use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;

use super::*;
use crate::config::{Config, HostPort};
use crate::engine::ledger::show::Shown;

struct Broker {
    readiness: Mutex<Readiness>,
    metrics: Metrics,
    acted: Mutex<Vec<String>>,
}

impl Admin for Broker {
    fn readiness(&self) -> Readiness {
        self.readiness.lock().clone()
    }

    fn before_scrape(&self) -> Pending<'_, ()> {
        self.metrics.set_partitions_offline(3);
        Box::pin(async {})
    }

    fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    fn transactions(&self, filter: Filter) -> Pending<'_, Option<Page<Transaction>>> {
        Box::pin(async move {
            let wanted = |txn: &Transaction| {
                let state = filter.states.is_empty() || filter.states.contains(&Shown::Ongoing);
                state && txn.transactional_id.starts_with(&filter.prefix)
            };
            let items: Vec<Transaction> = ["b", "a"].map(transaction).into_iter().filter(wanted).collect();
            Some(Page { total: items.len(), items })
        })
    }

    fn transaction(&self, id: String) -> Pending<'_, Result<Transaction, NotActed>> {
        Box::pin(async move { if id == "a/b" { Ok(transaction(&id)) } else { Err(NotActed::Unknown) } })
    }

    fn blocked(&self) -> Pending<'_, Option<Page<Blocked>>> {
        Box::pin(async { Some(Page { total: 0, items: Vec::new() }) })
    }

    fn listeners(&self) -> Vec<ListenerShown> {
        vec![ListenerShown { name: "external".to_owned(), bind: "x:1".to_owned(), advertised: "y:2".to_owned() }]
    }

    fn act(&self, action: Action, id: String, who: Who) -> Pending<'_, Result<Acted, NotActed>> {
        self.acted.lock().push(format!("{} {id} {}", action.name(), who.operator));
        Box::pin(async move {
            match id.as_str() {
                "unknown" => Err(NotActed::Unknown),
                "idle" => Err(NotActed::Conflict("nothing is open".to_owned())),
                _ => Ok(Acted {
                    action: action.name().to_owned(),
                    fenced: true,
                    done: id != "slow",
                    transaction: transaction(&id),
                }),
            }
        })
    }
}

fn transaction(id: &str) -> Transaction {
    Transaction {
        transactional_id: id.to_owned(),
        state: "Ongoing".to_owned(),
        producer_id: 7,
        producer_epoch: 1,
        client: None,
        started_unix_ms: Some(5),
        age_ms: Some(6),
        timeout_ms: 60_000,
        time_left_ms: Some(59_994),
        partitions: Vec::new(),
        groups: Vec::new(),
    }
}

struct Running {
    broker: Arc<Broker>,
    port: u16,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

async fn start() -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let readiness = Mutex::new(Readiness { ready: true, reasons: Vec::new() });
    let broker = Arc::new(Broker {
        readiness,
        metrics: Metrics::new(&Config::builtin(), &[]).unwrap(),
        acted: Mutex::default(),
    });
    let (stop, stopping) = watch::channel(false);
    #[expect(clippy::disallowed_methods, reason = "the server under test")]
    let serving = tokio::spawn(serve(listener, Arc::clone(&broker) as Arc<dyn Admin>, stopping));
    Running { broker, port, stop, serving }
}

impl Running {
    /// Everything that comes back for these bytes until the other side closes.
    async fn raw(&self, bytes: &[u8]) -> String {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        // The other side may close before it has read all of a bad request.
        let (sent, mut answer) = (socket.write_all(bytes).await, Vec::new());
        let read = socket.read_to_end(&mut answer).await;
        assert!(sent.is_ok() && read.is_ok() || !answer.is_empty(), "{sent:?} {read:?}");
        String::from_utf8(answer).unwrap()
    }

    async fn ask(&self, method: &str, path: &str) -> String {
        self.raw(format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes()).await
    }

    async fn probe(&self) -> Result<(), String> {
        let address = HostPort::new("0.0.0.0", self.port);
        tokio::task::spawn_blocking(move || probe::ready(&address)).await.unwrap()
    }
}

#[tokio::test]
async fn each_path_answers_what_it_should() {
    let running = start().await;
    let table = [
        ("GET", "/livez", "HTTP/1.1 200 OK", "alive\n"),
        ("GET", "/readyz?verbose", "HTTP/1.1 200 OK", "ready\n"),
        ("GET", "/metrics", "HTTP/1.1 200 OK", "\noncelog_partitions_offline 3\n"),
        ("GET", "/metrics", "content-type: text/plain; version=0.0.4; charset=utf-8\r\n", "# HELP oncelog_build_info"),
        ("GET", "/", "HTTP/1.1 404 Not Found", "/readyz"),
        ("GET", "/metrics/../livez", "HTTP/1.1 404 Not Found", "not found"),
        ("POST", "/metrics", "HTTP/1.1 405 Method Not Allowed", "only GET"),
        ("DELETE", "/livez", "allow: GET\r\n", "only GET"),
        ("GET", "/v1/transactions", "content-type: application/json\r\n", "\"total\": 2"),
        ("GET", "/v1/transactions?prefix=b", "HTTP/1.1 200 OK", "\"transactional_id\": \"b\""),
        ("GET", "/v1/transactions?state=empty", "HTTP/1.1 200 OK", "\"total\": 0"),
        ("GET", "/v1/transactions?age=1", "HTTP/1.1 400 Bad Request", "age is not a filter"),
        ("GET", "/v1/transactions/a%2Fb", "HTTP/1.1 200 OK", "\"time_left_ms\": 59994"),
        ("GET", "/v1/transactions/c", "HTTP/1.1 404 Not Found", "no such transactional id"),
        ("GET", "/v1/partitions/blocked", "HTTP/1.1 200 OK", "\"items\": []"),
        ("GET", "/v1/listeners", "HTTP/1.1 200 OK", "\"advertised\": \"y:2\""),
        ("GET", "/v1/transactions/a/abort", "allow: POST\r\n", "only POST"),
        ("POST", "/v1/transactions/a/abort", "HTTP/1.1 403 Forbidden", "x-oncelog-operator"),
    ];
    for (method, path, head, body) in table {
        let answer = running.ask(method, path).await;
        assert!(answer.contains(head) && answer.contains(body), "{method} {path}: {answer}");
    }
}

#[tokio::test]
async fn what_an_operator_asks_for_is_done_in_his_name() {
    let running = start().await;
    let head = "Host: x\r\nConnection: close\r\nX-Oncelog-Operator:  ada \r\nContent-Length: 0\r\n\r\n";
    for (path, status, body) in [
        ("a%2Fb/abort", "200 OK", "\"action\": \"abort\""),
        ("a/fence", "200 OK", "\"action\": \"fence\""),
        ("unknown/abort", "404 Not Found", "no such transactional id"),
        ("idle/abort", "409 Conflict", "nothing is open"),
        ("slow/abort", "202 Accepted", "\"done\": false"),
    ] {
        let answer = running.raw(format!("POST /v1/transactions/{path} HTTP/1.1\r\n{head}").as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(body), "{path}: {answer}");
    }
    let page = format!("POST /v1/transactions/a/abort HTTP/1.1\r\nOrigin: http://evil\r\n{head}");
    assert!(running.raw(page.as_bytes()).await.starts_with("HTTP/1.1 403"), "no page in a browser may");
    let acted = running.broker.acted.lock().clone();
    assert_eq!(acted, ["abort a/b ada", "fence a ada", "abort unknown ada", "abort idle ada", "abort slow ada"]);
}

#[tokio::test]
async fn not_ready_is_503_with_the_reasons_and_the_probe_repeats_them() {
    let running = start().await;
    assert_eq!(running.probe().await, Ok(()));
    let reasons = vec!["the disk is full".to_owned(), "2 markers are owed".to_owned()];
    *running.broker.readiness.lock() = Readiness { ready: false, reasons };
    let answer = running.ask("GET", "/readyz").await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.ends_with("\r\n\r\nnot ready\n- the disk is full\n- 2 markers are owed\n"), "{answer}");
    assert!(running.ask("GET", "/livez").await.starts_with("HTTP/1.1 200 "));
    assert_eq!(running.probe().await, Err("not ready; the disk is full; 2 markers are owed".to_owned()));
    *running.broker.readiness.lock() = Readiness { ready: true, reasons: vec!["little room".to_owned()] };
    let answer = running.ask("GET", "/readyz").await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nready\n- little room\n"), "{answer}");
    assert_eq!(running.probe().await, Ok(()), "a warning");
}

#[tokio::test]
async fn what_is_no_request_is_turned_away() {
    let running = start().await;
    assert!(running.raw(b"\x00\x00\x00\x12\x00\x12 nonsense\r\n\r\n").await.starts_with("HTTP/1.1 400 "));
    let long = format!("GET /livez HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "y".repeat(4 * MAX_HEAD_BYTES));
    assert!(running.raw(long.as_bytes()).await.starts_with("HTTP/1.1 431 "));
    assert!(running.ask("GET", "/livez").await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn it_ends_when_told_though_a_connection_is_kept_open() {
    let running = start().await;
    let mut kept = TcpStream::connect(("127.0.0.1", running.port)).await.unwrap();
    kept.write_all(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut first = [0; 12];
    kept.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    let port = running.port;
    running.stop.send(true).unwrap();
    running.serving.await.unwrap();
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
    let probed = tokio::task::spawn_blocking(move || probe::ready(&HostPort::new("127.0.0.1", port))).await.unwrap();
    let why = probed.unwrap_err();
    assert!(why.starts_with(&format!("nobody answers at 127.0.0.1:{port} (admin.bind): ")), "{why}");
}

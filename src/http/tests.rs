use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;

use super::*;
use crate::config::{Config, HostPort};

struct Broker {
    readiness: Mutex<Readiness>,
    metrics: Metrics,
}

impl Admin for Broker {
    fn readiness(&self) -> Readiness {
        self.readiness.lock().clone()
    }

    fn before_scrape(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.metrics.set_partitions_offline(3);
        Box::pin(async {})
    }

    fn metrics(&self) -> &Metrics {
        &self.metrics
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
    let broker = Arc::new(Broker { readiness, metrics: Metrics::new(&Config::builtin(), &[]).unwrap() });
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
    ];
    for (method, path, head, body) in table {
        let answer = running.ask(method, path).await;
        assert!(answer.contains(head) && answer.contains(body), "{method} {path}: {answer}");
    }
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

use super::{Edge, End, Limits, Observer, Unobserved, serve};
use crate::api::service::{Incoming, Peer, Pending, Reply, Service};
use crate::wire::Api;
use bytes::{BufMut, Bytes, BytesMut};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// A service whose replies the test makes: it is told of every request when it starts and when it is dropped.
struct Scripted {
    events: mpsc::UnboundedSender<Event>,
    waiting: Mutex<BTreeMap<i32, oneshot::Sender<Reply>>>,
}

#[derive(Debug, PartialEq, Eq)]
enum Event {
    Started(i32),
    Dropped(i32),
    Ended(&'static str),
}

struct Watched {
    id: i32,
    replied: bool,
    events: mpsc::UnboundedSender<Event>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.replied {
            drop(self.events.send(Event::Dropped(self.id)));
        }
    }
}

impl Service for Scripted {
    fn call(&self, _peer: &Arc<Peer>, request: Incoming) -> Pending {
        let id = request.correlation_id;
        let (reply, replied) = oneshot::channel();
        self.waiting.lock().insert(id, reply);
        let events = self.events.clone();
        Box::pin(async move {
            drop(events.send(Event::Started(id)));
            let mut watched = Watched { id, replied: false, events };
            let body = request.body;
            let reply = replied.await.unwrap_or(Reply::Close("the test gave no reply".into()));
            watched.replied = true;
            drop(body);
            reply
        })
    }
}

impl Observer for Scripted {
    fn closed(&self, _peer: &Peer, end: &End) {
        drop(self.events.send(Event::Ended(end.cause())));
    }
}

/// A broker of which only the edge is real.
struct Broker {
    address: std::net::SocketAddr,
    script: Arc<Scripted>,
    events: mpsc::UnboundedReceiver<Event>,
    edge: Arc<Edge>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Broker {
    async fn start(limits: Limits) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        let script = Arc::new(Scripted { events: sender, waiting: Mutex::default() });
        let edge = Edge::new(script.clone(), script.clone(), limits);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopping) = watch::channel(false);
        #[expect(clippy::disallowed_methods, reason = "the listener runs beside the test")]
        let serving = tokio::spawn(serve(listener, "external".into(), edge.clone(), stopping));
        Self { address, script, events, edge, stop, serving }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn expect(&mut self, event: Event) {
        let next = tokio::time::timeout(Duration::from_secs(20), self.events.recv()).await;
        assert_eq!(next.expect("an event in time"), Some(event));
    }

    async fn expect_started(&mut self, ids: impl IntoIterator<Item = i32>) {
        for id in ids {
            self.expect(Event::Started(id)).await;
        }
    }

    /// Nothing happens for a while. Too short a while could only miss what is wrong, never blame what is right.
    async fn expect_quiet(&mut self) {
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert_eq!(self.events.try_recv().ok(), None);
    }

    fn reply(&self, id: i32, reply: Reply) {
        let waiting = self.script.waiting.lock().remove(&id);
        assert!(waiting.expect("a request that waits").send(reply).is_ok(), "request {id} was dropped");
    }

    fn answer(&self, id: i32) {
        self.reply(id, Reply::Answer(vec![Bytes::from(format!("answer {id}"))]));
    }

    async fn stopped(self) {
        self.stop.send(true).unwrap();
        tokio::time::timeout(Duration::from_secs(20), self.serving).await.expect("the end in time").unwrap();
    }
}

/// Frame of a request: key, version, correlation id, no client id, body.
fn frame(api: Api, version: i16, id: i32, body: &[u8]) -> Vec<u8> {
    let mut frame = BytesMut::new();
    frame.put_i32(i32::try_from(10 + body.len()).unwrap());
    frame.put_i16(api.key());
    frame.put_i16(version);
    frame.put_i32(id);
    frame.put_i16(-1);
    frame.put_slice(body);
    frame.to_vec()
}

/// A Produce of version 7 whose records take this many bytes.
fn produce(id: i32, records: usize) -> Vec<u8> {
    let mut body = BytesMut::from(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 9, 0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 1][..]);
    body.put_i32(0);
    body.put_i32(i32::try_from(records).unwrap());
    body.put_bytes(7, records);
    frame(Api::Produce, 7, id, &body)
}

/// A Heartbeat of version 0: stands for every request that runs alone.
fn alone(id: i32) -> Vec<u8> {
    frame(Api::Heartbeat, 0, id, &[0, 1, b'g', 0, 0, 0, 1, 0, 1, b'm'])
}

async fn read_answer(stream: &mut TcpStream) -> Option<(i32, String)> {
    let read = async {
        let length = stream.read_i32().await.ok()?;
        let id = stream.read_i32().await.ok()?;
        let mut body = vec![0; usize::try_from(length - 4).unwrap()];
        stream.read_exact(&mut body).await.ok()?;
        Some((id, String::from_utf8_lossy(&body).into_owned()))
    };
    tokio::time::timeout(Duration::from_secs(20), read).await.expect("an answer or the end in time")
}

async fn expect_answers(stream: &mut TcpStream, ids: impl IntoIterator<Item = i32>) {
    for id in ids {
        assert_eq!(read_answer(stream).await, Some((id, format!("answer {id}"))));
    }
}

/// V-131, V-133: Produces start in order beside each other, are finished in any order, and answered in theirs.
#[tokio::test]
async fn produces_run_ahead_and_are_answered_in_order() {
    let mut broker = Broker::start(Limits::default()).await;
    let mut client = broker.connect().await;
    let all: Vec<u8> = (1..=5).flat_map(|id| produce(id, 100)).collect();
    client.write_all(&all).await.unwrap();
    broker.expect_started(1..=5).await;
    for id in [3, 5, 2, 4] {
        broker.answer(id);
    }
    broker.expect_quiet().await;
    broker.answer(1);
    expect_answers(&mut client, 1..=5).await;
    broker.stopped().await;
}

/// V-131, V-132: whatever is not a Produce waits for all before it and holds back all behind it.
#[tokio::test]
async fn other_requests_run_alone() {
    let mut broker = Broker::start(Limits::default()).await;
    let mut client = broker.connect().await;
    let all = [produce(1, 10), produce(2, 10), alone(3), produce(4, 10), alone(5), alone(6)].concat();
    client.write_all(&all).await.unwrap();
    broker.expect_started([1, 2]).await;
    broker.answer(2);
    broker.expect_quiet().await;
    broker.answer(1);
    broker.expect_started([3]).await;
    broker.expect_quiet().await;
    for (id, next) in [(3, 4), (4, 5), (5, 6)] {
        broker.answer(id);
        broker.expect_started([next]).await;
    }
    broker.answer(6);
    expect_answers(&mut client, 1..=6).await;
    broker.stopped().await;
}

#[tokio::test]
async fn no_more_run_ahead_than_may() {
    let mut broker = Broker::start(Limits { max_ahead: 3, ..Limits::default() }).await;
    let mut client = broker.connect().await;
    let all: Vec<u8> = (1..=5).flat_map(|id| produce(id, 10)).collect();
    client.write_all(&all).await.unwrap();
    broker.expect_started(1..=3).await;
    broker.expect_quiet().await;
    broker.answer(1);
    broker.expect_started([4]).await;
    broker.expect_quiet().await;
    broker.stop.send(true).unwrap();
    for id in 2..=4 {
        broker.answer(id);
    }
    expect_answers(&mut client, 1..=4).await;
    assert_eq!(read_answer(&mut client).await, None, "5 had not been started when the broker stopped");
}

/// V-120, C-108: the answer is in version 0, whatever follows the correlation id, and the connection goes on.
#[tokio::test]
async fn a_future_api_versions_is_told_our_range() {
    let mut broker = Broker::start(Limits::default()).await;
    let mut client = broker.connect().await;
    let mut future = frame(Api::ApiVersions, 3, 1, b"\xff\xff\xff\xff garbage");
    future[6..8].copy_from_slice(&127_i16.to_be_bytes());
    client.write_all(&[future, alone(2)].concat()).await.unwrap();
    let mut answer = [0; 20];
    client.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, [0, 0, 0, 16, 0, 0, 0, 1, 0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 3]);
    broker.expect_started([2]).await;
    broker.answer(2);
    expect_answers(&mut client, [2]).await;
}

/// V-101, V-104, C-107, C-112: closed without an answer, and others are served as before.
#[tokio::test]
async fn hostile_frames_close_their_connection_and_no_other() {
    let mut broker = Broker::start(Limits::default()).await;
    let mut good = broker.connect().await;
    let mut huge_count = frame(Api::Metadata, 1, 1, &i32::MAX.to_be_bytes());
    huge_count.extend([0; 4]);
    let mut unknown = alone(1);
    unknown[4..6].copy_from_slice(&9999_i16.to_be_bytes());
    let mut unsupported = produce(1, 1);
    unsupported[6..8].copy_from_slice(&2_i16.to_be_bytes());
    let table: [(&str, Vec<u8>); 11] = [
        ("http", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()),
        ("tls", vec![0x16, 3, 1, 2, 0, 1, 0, 1]),
        ("frame_length", i32::MAX.to_be_bytes().to_vec()),
        ("frame_length", (-1_i32).to_be_bytes().to_vec()),
        ("frame_length", vec![0, 0, 0, 0]),
        ("unknown_api", unknown),
        ("unsupported_version", unsupported),
        ("malformed", huge_count),
        ("malformed", frame(Api::Heartbeat, 0, 1, &[0, 1, b'g'])),
        ("malformed", frame(Api::Heartbeat, 4, 1, &[65])),
        ("malformed", frame(Api::ListOffsets, 1, 1, &[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xfe])),
    ];
    for (id, (cause, bytes)) in (100..).zip(table) {
        let mut bad = broker.connect().await;
        bad.write_all(&bytes).await.unwrap();
        assert_eq!(read_answer(&mut bad).await, None, "{cause}");
        broker.expect(Event::Ended(cause)).await;
        good.write_all(&alone(id)).await.unwrap();
        broker.expect_started([id]).await;
        broker.answer(id);
        expect_answers(&mut good, [id]).await;
    }
    broker.stopped().await;
}

/// A frame that is cut off is never started; its share of the budget comes back.
#[tokio::test]
async fn a_truncated_frame_is_forgotten() {
    let mut broker = Broker::start(Limits::default()).await;
    let free = broker.edge.budget().free_bytes();
    let mut client = broker.connect().await;
    let whole = produce(1, 200_000);
    client.write_all(&whole[..150_000]).await.unwrap();
    drop(client);
    broker.expect(Event::Ended("left")).await;
    assert_eq!(broker.edge.budget().free_bytes(), free);
}

/// V-134: a parked request is dropped when the client is gone, also behind requests that came after it.
#[tokio::test]
async fn a_parked_request_is_dropped_with_its_client() {
    let mut broker = Broker::start(Limits { linger: Duration::from_millis(20), ..Limits::default() }).await;
    for (id, behind) in [(1, vec![]), (2, [alone(3), produce(4, 100)].concat())] {
        let mut client = broker.connect().await;
        client.write_all(&[alone(id), behind].concat()).await.unwrap();
        broker.expect_started([id]).await;
        drop(client);
        broker.expect(Event::Dropped(id)).await;
        broker.expect(Event::Ended("left")).await;
    }
}

/// A client may shut down its side and wait: what it asked before is answered, if it does not take too long.
#[tokio::test]
async fn a_half_closed_client_gets_its_answers() {
    let mut broker = Broker::start(Limits { linger: Duration::from_secs(20), ..Limits::default() }).await;
    let mut client = broker.connect().await;
    client.write_all(&[produce(1, 10), alone(2), produce(3, 10)].concat()).await.unwrap();
    client.shutdown().await.unwrap();
    for id in 1..=3 {
        broker.expect_started([id]).await;
        broker.answer(id);
    }
    expect_answers(&mut client, 1..=3).await;
    assert_eq!(read_answer(&mut client).await, None);
    broker.expect(Event::Ended("left")).await;
}

/// V-135, T-312: acks = 0 gets no answer, and its error closes the connection behind the answers before it.
#[tokio::test]
async fn what_has_no_answer_gets_none() {
    let mut broker = Broker::start(Limits::default()).await;
    let mut client = broker.connect().await;
    let all: Vec<u8> = (1..=4).flat_map(|id| produce(id, 10)).collect();
    client.write_all(&all).await.unwrap();
    broker.expect_started(1..=4).await;
    broker.reply(1, Reply::Nothing);
    broker.reply(3, Reply::Close("NOT_LEADER_OR_FOLLOWER for a Produce with acks = 0".into()));
    broker.answer(4);
    broker.answer(2);
    expect_answers(&mut client, [2]).await;
    assert_eq!(read_answer(&mut client).await, None);
    broker.expect(Event::Ended("refused")).await;
}

/// A full budget stops reading, short frames have room of their own, and what is given back serves the next.
#[tokio::test]
async fn the_budget_holds() {
    let limits = Limits {
        in_flight_bytes: 4 << 20,
        frame: crate::wire::frame::FrameLimits { max_bytes: 3 << 20, plain_max_bytes: 1 << 20 },
        ..Limits::default()
    };
    let mut broker = Broker::start(limits).await;
    let free = broker.edge.budget().free_bytes();
    let (mut first, mut second, mut third) = (broker.connect().await, broker.connect().await, broker.connect().await);
    first.write_all(&produce(1, 2 << 20)).await.unwrap();
    broker.expect_started([1]).await;
    let held = free[1] - broker.edge.budget().free_bytes()[1];
    assert_eq!(held, produce(1, 2 << 20).len() - 4, "a frame is counted to the byte");
    let sending = async {
        second.write_all(&produce(2, 2 << 20)).await.unwrap();
        second
    };
    let busy = async {
        broker.expect_quiet().await;
        third.write_all(&alone(3)).await.unwrap();
        broker.expect_started([3]).await;
        broker.answer(3);
        expect_answers(&mut third, [3]).await;
        broker.answer(1);
        expect_answers(&mut first, [1]).await;
        broker.expect_started([2]).await;
        broker.answer(2);
        broker
    };
    let (mut second, broker) = tokio::join!(sending, busy);
    expect_answers(&mut second, [2]).await;
    assert_eq!(broker.edge.budget().free_bytes(), free);
    broker.stopped().await;
}

/// Large answers in several pieces arrive whole though the socket takes them bit by bit.
#[tokio::test]
async fn answers_in_pieces_arrive_whole() {
    let mut broker = Broker::start(Limits::default()).await;
    let mut client = broker.connect().await;
    client.write_all(&alone(1)).await.unwrap();
    broker.expect_started([1]).await;
    let pieces: Vec<Bytes> = (0..200_u8).map(|n| Bytes::from(vec![b'a' + n % 26; usize::from(n) * 400])).collect();
    let whole = pieces.concat();
    broker.reply(1, Reply::Answer(pieces));
    let (id, body) = read_answer(&mut client).await.unwrap();
    assert_eq!((id, body.len()), (1, whole.len()));
    assert!(body.as_bytes() == whole, "the pieces are in order");
}

/// Stopping lets what is in flight finish, within its time, and accepts nothing more.
#[tokio::test]
async fn stopping_drains() {
    let mut broker = Broker::start(Limits { drain: Duration::from_millis(200), ..Limits::default() }).await;
    let (mut quick, mut slow, idle) = (broker.connect().await, broker.connect().await, broker.connect().await);
    quick.write_all(&produce(1, 10)).await.unwrap();
    broker.expect_started([1]).await;
    slow.write_all(&alone(2)).await.unwrap();
    broker.expect_started([2]).await;
    broker.stop.send(true).unwrap();
    broker.expect(Event::Ended("stopping")).await;
    drop(idle);
    broker.answer(1);
    expect_answers(&mut quick, [1]).await;
    broker.expect(Event::Ended("stopping")).await;
    broker.expect(Event::Dropped(2)).await;
    broker.expect(Event::Ended("stopping")).await;
    assert_eq!(read_answer(&mut slow).await, None);
    broker.serving.await.unwrap();
    assert!(TcpStream::connect(broker.address).await.is_err());
}

#[tokio::test]
async fn no_more_connections_than_may() {
    let mut broker = Broker::start(Limits { max_connections: 1, ..Limits::default() }).await;
    let mut first = broker.connect().await;
    first.write_all(&alone(1)).await.unwrap();
    broker.expect_started([1]).await;
    let mut second = broker.connect().await;
    second.write_all(&alone(2)).await.unwrap();
    broker.expect_quiet().await;
    broker.answer(1);
    drop(first);
    broker.expect(Event::Ended("left")).await;
    broker.expect_started([2]).await;
    broker.answer(2);
    expect_answers(&mut second, [2]).await;
}

/// V-141, and a frame that dribbles in: over a pipe, in time that the test moves.
mod in_paused_time {
    use super::*;
    use crate::net::connection;
    use std::net::SocketAddr;
    use tokio::io::{DuplexStream, ReadHalf, WriteHalf};
    use tokio::time::Instant;

    struct Never;

    impl Service for Never {
        fn call(&self, _peer: &Arc<Peer>, _request: Incoming) -> Pending {
            Box::pin(std::future::pending())
        }
    }

    fn pipe() -> (DuplexStream, (ReadHalf<DuplexStream>, WriteHalf<DuplexStream>)) {
        let (client, server) = tokio::io::duplex(1 << 20);
        (client, tokio::io::split(server))
    }

    async fn ends_after(sent: Vec<Vec<u8>>, pause: Duration) -> (&'static str, Duration) {
        let edge = Edge::new(Arc::new(Never), Arc::new(Unobserved), Limits::default());
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let peer = Arc::new(Peer { address, listener: "external".into(), connection: 0, local_port: 0 });
        let (mut client, (read, write)) = pipe();
        let (_stop, stopping) = watch::channel(false);
        let started = Instant::now();
        let writing = async {
            for bytes in sent {
                client.write_all(&bytes).await.unwrap();
                tokio::time::sleep(pause).await;
            }
            std::future::pending::<()>().await;
        };
        let end = tokio::select! {
            end = connection::run(read, write, &peer, &edge, stopping) => end,
            () = writing => unreachable!("the client stays"),
        };
        (end.cause(), started.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_a_connection() {
        let minutes = |n: u64| Duration::from_secs(60 * n);
        let table = [
            (vec![], minutes(1), "idle", minutes(10), "nothing was ever sent"),
            (vec![alone(1)], minutes(1), "idle", minutes(10), "a parked request"),
            (vec![produce(1, 5), produce(2, 5), produce(3, 5)], minutes(9), "idle", minutes(28), "traffic, then none"),
            (vec![vec![0, 0]], minutes(1), "idle", minutes(10), "half a length"),
        ];
        for (sent, pause, cause, after, name) in table {
            assert_eq!(ends_after(sent, pause).await, (cause, after), "{name}: V-141");
        }
    }

    /// 30 s and one for every megabyte: one byte a second does not hold a place in the budget for ever.
    #[tokio::test(start_paused = true)]
    async fn a_frame_that_dribbles_in_is_given_up() {
        let whole = produce(1, 5 << 20);
        let dribble: Vec<Vec<u8>> = whole.chunks(1000).map(<[u8]>::to_vec).collect();
        assert_eq!(ends_after(dribble, Duration::from_secs(1)).await, ("slow_frame", Duration::from_secs(35)));
    }
}

//! One start of a broker on a directory that is there already, as a client and an operator see it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use crate::child::{Server, free_port, now};
use crate::figures::{figure, heading, mib, ms, peak_kib};
use crate::raw::Client;
use crate::raw::batch::Batch;
use crate::raw::data::Isolation::{ReadCommitted, ReadUncommitted};

/// Longer no start may take.
const LIMIT: Duration = Duration::from_secs(300);
const GLANCE: Duration = Duration::from_millis(1);
/// Connections that fetch at one time.
const READERS: usize = 8;
/// Told by a partition that is being opened, or whose topic is.
const AGAIN: [i16; 3] = [3, 5, 6];

/// The topic that is measured.
pub(crate) const TOPIC: &str = "t";

/// A broker whose process and directory go whatever happens: a release build does not unwind.
pub(crate) struct Broker {
    pub(crate) server: Server,
    admin: u16,
}

/// What a panic ends and removes.
static OURS: Mutex<Option<(u32, std::path::PathBuf)>> = Mutex::new(None);

impl Broker {
    pub(crate) fn of(program: &std::path::Path) -> Self {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |why| {
            before(why);
            // Held to the end of the process: other threads may panic for the same reason, and must not end it before.
            let mut ours = OURS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if let Some((pid, dir)) = ours.take() {
                let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
                let killed = pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::KILL));
                let removed = std::fs::remove_dir_all(&dir);
                figure("ended and removed", &format!("{killed:?}, {removed:?}"));
            }
            std::process::exit(1);
        }));
        let admin = free_port();
        let server = Server::of(program, &[&format!("admin.bind=127.0.0.1:{admin}")]);
        let broker = Self { server, admin };
        broker.remember();
        figure("directory", &broker.server.dir().display().to_string());
        broker
    }

    fn remember(&self) {
        *OURS.lock().unwrap() = Some((self.server.pid(), self.server.dir().to_path_buf()));
    }

    /// SIGTERM, and how long the end took.
    pub(crate) fn stop(&mut self) {
        let began = now();
        let status = self.server.terminate();
        assert!(status.success(), "{status}");
        figure("SIGTERM to the end", &ms(began.elapsed()));
    }

    /// Starts it, and prints what there is to be said of that.
    pub(crate) fn start(&mut self, what: &str, partitions: i32) {
        heading(what);
        let began = now();
        self.server.spawn_again();
        self.remember();
        let address = self.server.address();
        until(began, "listening", || TcpStream::connect(address).ok());
        figure("spawn to listening", &ms(began.elapsed()));
        until(began, "ready", || self.page("/readyz").filter(|page| page.starts_with("HTTP/1.1 200")));
        figure("spawn to readiness 200", &ms(began.elapsed()));
        figure("peak memory (VmHWM) until ready", &mib(peak_kib(self.server.pid()) << 10));
        figure("verified until ready", &mib(self.verified()));
        let mut client = self.server.connect();
        let produced = until(began, "a batch taken", || {
            let answer = client.produce(TOPIC, 0, None, &Batch::plain(1));
            accepted(answer.code, "Produce").then_some(answer)
        });
        figure("spawn to first accepted produce", &ms(began.elapsed()));
        figure("its offset", &produced.base_offset.to_string());
        let first = fetch_all(self, partitions, began);
        figure("spawn to first fetch", &ms(first));
        figure("spawn to a fetch of every partition", &ms(began.elapsed()));
        figure("verified until then", &mib(self.verified()));
        figure("peak memory until then", &mib(peak_kib(self.server.pid()) << 10));
    }

    /// Bytes of logs that this process has verified.
    fn verified(&self) -> u64 {
        let page = self.page("/metrics").unwrap_or_default();
        let line = page.lines().find_map(|line| line.strip_prefix("oncelog_log_verified_bytes_total "));
        line.and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    fn page(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.admin)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
        stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: bench\r\nconnection: close\r\n\r\n").as_bytes()).ok()?;
        let mut page = String::new();
        stream.read_to_string(&mut page).ok()?;
        Some(page)
    }

    /// Reads every committed record from the front on; gives bytes.
    pub(crate) fn read_everything(&self, partitions: i32) -> u64 {
        let began = now();
        let next = AtomicI32::new(0);
        let bytes = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..READERS).map(|_| scope.spawn(|| self.read_some(&next, partitions))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        let rate = u64::try_from(u128::from(bytes) * 1000 / began.elapsed().as_millis().max(1)).unwrap();
        figure("read back, read_committed", &format!("{} in {}, {}/s", mib(bytes), ms(began.elapsed()), mib(rate)));
        figure("peak memory after reading", &mib(peak_kib(self.server.pid()) << 10));
        bytes
    }

    fn read_some(&self, next: &AtomicI32, partitions: i32) -> u64 {
        let mut client = self.server.connect();
        let mut bytes = 0;
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= partitions {
                return bytes;
            }
            let mut offset = 0;
            loop {
                let fetched = client.fetch(TOPIC, part, offset, ReadCommitted);
                assert_eq!(fetched.code, 0, "Fetch of partition {part} at {offset}");
                let Some(next) = next_offset(&fetched.records) else { break };
                assert!(next > offset, "partition {part} goes on at {offset}");
                bytes += u64::try_from(fetched.records.len()).unwrap();
                offset = next;
            }
        }
    }

    /// Each partition's end.
    pub(crate) fn ends(&self, partitions: i32) -> Vec<i64> {
        let mut client = self.server.connect();
        let end = |part| client.list_offsets(TOPIC, part, crate::raw::data::LATEST, ReadUncommitted).1;
        (0..partitions).map(end).collect()
    }
}

impl Drop for Broker {
    /// The server ends its process itself, and its directory goes with it.
    fn drop(&mut self) {
        *OURS.lock().unwrap() = None;
    }
}

/// Looks until there is something to see.
fn until<T>(began: Instant, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(began.elapsed() < LIMIT, "{what}: not within {LIMIT:?}");
        std::thread::sleep(GLANCE);
    }
}

/// Whether it was; if not, it must be something that passes.
fn accepted(code: i16, what: &str) -> bool {
    assert!(code == 0 || AGAIN.contains(&code), "{what}: error {code}");
    code == 0
}

/// One fetch of each partition, from its front; gives when the first one was answered.
fn fetch_all(broker: &Broker, partitions: i32, began: Instant) -> Duration {
    let next = AtomicI32::new(0);
    let one = || {
        let mut client = broker.server.connect();
        let mut first: Option<Duration> = None;
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= partitions {
                return first;
            }
            fetch_one(&mut client, part, began);
            first.get_or_insert(began.elapsed());
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..READERS).map(|_| scope.spawn(one)).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).min().unwrap_or_default()
    })
}

fn fetch_one(client: &mut Client, part: i32, began: Instant) {
    until(began, "a fetch", || accepted(client.fetch(TOPIC, part, 0, ReadCommitted).code, "Fetch").then_some(()));
}

/// The offset behind the last whole batch.
fn next_offset(mut records: &[u8]) -> Option<i64> {
    let mut next = None;
    while let (Some(base), Some(length)) = (records.first_chunk::<8>(), records.get(8..12)) {
        let size = usize::try_from(i32::from_be_bytes(length.try_into().unwrap())).unwrap() + 12;
        let Some(delta) = records.get(23..27).filter(|_| size <= records.len()) else { break };
        next = Some(i64::from_be_bytes(*base) + i64::from(i32::from_be_bytes(delta.try_into().unwrap())) + 1);
        records = &records[size..];
    }
    next
}

//! A child process that is a broker, or should become one.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::raw::Client;

/// How long anything may take that has to happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// How long it is slept between two looks.
const GLANCE: Duration = Duration::from_millis(2);

/// A whole ApiVersions request of version 0, by nobody.
const API_VERSIONS: &[u8] = &[0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff];

/// Now, by the monotonic clock.
#[expect(clippy::disallowed_methods, reason = "a test may look at the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Looks until there is something to see, which must be before the patience ends.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(began.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(GLANCE);
    }
}

/// A port nobody listens on. Below the ports that outgoing connections are given: a client that tries to reach a
/// broker which is away must not take its port, or find itself at the other end.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + u16::try_from(std::process::id() % 120).unwrap() * 100;
    eventually("a free port", || {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed) % 100;
        TcpListener::bind(("127.0.0.1", port)).is_ok().then_some(port)
    })
}

/// A program, told nothing yet, in an environment without settings and a directory without a file of them.
pub(crate) fn quiet(program: &Path, dir: &Path) -> Command {
    let mut command = Command::new(program);
    let means_something = |name: &str| ["ONCELOG_", "KAFKA_", "OTEL_"].iter().any(|front| name.starts_with(front));
    for (name, _) in std::env::vars().filter(|(name, _)| means_something(name)) {
        command.env_remove(name);
    }
    command.current_dir(dir).stdin(Stdio::null());
    command
}

/// What a program that ends by itself said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

/// Runs it to its end.
pub(crate) fn run(command: &mut Command) -> Said {
    let began = now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let ended = catch_unwind(AssertUnwindSafe(|| eventually("its end", || child.try_wait().unwrap())));
    let status = ended.unwrap_or_else(|_| {
        child.kill().unwrap();
        child.wait().unwrap()
    });
    let took = began.elapsed();
    let text = |pipe: &mut dyn Read| {
        let mut text = String::new();
        pipe.read_to_string(&mut text).unwrap();
        text
    };
    let stdout = text(&mut child.stdout.take().unwrap());
    let stderr = text(&mut child.stderr.take().unwrap());
    Said { code: status.code(), stdout, stderr, took }
}

/// A broker in a process of its own, always at the same port. Killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    command: Command,
    port: u16,
    dir: TempDir,
}

impl Server {
    /// This program on a directory of its own, with these settings.
    pub(crate) fn of(program: &Path, settings: &[&str]) -> Self {
        Self::among(program, settings, &[])
    }

    /// The same, with these variables in its environment.
    pub(crate) fn among(program: &Path, settings: &[&str], variables: &[(&str, &str)]) -> Self {
        let (dir, port) = (TempDir::new().unwrap(), free_port());
        let mut command = quiet(program, dir.path());
        command.envs(variables.iter().copied());
        let own = [
            "data_dir=data".to_owned(),
            "admin.bind=127.0.0.1:0".to_owned(),
            format!("listeners.external.bind=127.0.0.1:{port}"),
            format!("listeners.external.advertised=127.0.0.1:{port}"),
        ];
        for setting in own.iter().map(String::as_str).chain(settings.iter().copied()) {
            command.args(["--set", setting]);
        }
        Self::run(command, dir, port)
    }

    /// A program that will listen at this port and writes its log to standard error.
    pub(crate) fn run(mut command: Command, dir: TempDir, port: u16) -> Self {
        let child = spawn(&mut command, dir.path());
        let mut server = Self { child, command, port, dir };
        server.wait_until_it_serves();
        server
    }

    fn wait_until_it_serves(&mut self) {
        eventually("a broker that serves", || {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the broker ended ({status}) and said:\n{}", self.log());
            }
            TcpStream::connect(self.address()).ok()
        });
    }

    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.address())
    }

    /// A connection that is served, once there is one: a process that is ending closes its connections one by one.
    pub(crate) fn connect_again(&self) -> Client {
        eventually("a broker that serves again", || {
            let mut stream = TcpStream::connect(self.address()).ok()?;
            stream.write_all(API_VERSIONS).ok()?;
            stream.read_exact(&mut [0; 4]).ok()?;
            Some(self.connect())
        })
    }

    /// The directory in which its `data` lies.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has this process id, and still runs.
    pub(crate) fn is_same_process(&self, pid: u32) -> bool {
        self.child.id() == pid && Path::new(&format!("/proc/{pid}")).exists()
    }

    /// All it wrote to its log, by all its processes so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(log_path(self.dir.path())).unwrap()
    }

    /// The address of its admin port, as its log says; a moment after it serves.
    pub(crate) fn admin(&self) -> String {
        eventually("a line that says where the admin port is", || {
            let log = self.log();
            let (_, behind) = log.rsplit_once(" admin=")?;
            let (address, _) = behind.split_once(' ')?;
            Some(address.to_owned())
        })
    }

    /// Whether the last start found that the end before it was clean.
    pub(crate) fn started_clean(&self) -> bool {
        let log = self.log();
        let (_, behind) = log.rsplit_once(" clean=").expect("a line that says whether the end was clean");
        behind.starts_with("true")
    }

    /// SIGKILL, in the middle of whatever it does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, and the end that follows.
    pub(crate) fn terminate(&mut self) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        self.end()
    }

    /// The end that comes by itself.
    pub(crate) fn end(&mut self) -> ExitStatus {
        eventually("the end of the broker", || self.child.try_wait().unwrap())
    }

    /// Starts it again after its end.
    pub(crate) fn start_again(&mut self) {
        self.spawn_again();
        self.wait_until_it_serves();
    }

    /// The same, for whoever looks himself when it serves.
    pub(crate) fn spawn_again(&mut self) {
        self.child = spawn(&mut self.command, self.dir.path());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the broker's log:\n{}", self.log());
        }
        if self.child.try_wait().unwrap().is_none() {
            self.kill();
        }
    }
}

fn log_path(dir: &Path) -> PathBuf {
    dir.join("log")
}

/// Its standard input stays open as long as this process lives.
fn spawn(command: &mut Command, dir: &Path) -> Child {
    let log = File::options().create(true).append(true).open(log_path(dir)).unwrap();
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log).spawn().unwrap()
}

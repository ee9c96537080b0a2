//! The broker's process: started, stopped in every way there is, and started again on what it left.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::child::{PATIENCE, now, quiet};

/// What makes a broker of this program, besides its settings.
pub(crate) struct Broker {
    program: PathBuf,
    /// Holds `data`.
    dir: PathBuf,
    /// Holds its log and process id, and stays writable when `dir` is full.
    notes: PathBuf,
    port: u16,
    advertised: SocketAddr,
    starts: u32,
    child: Option<Child>,
}

/// Why there is no broker.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Failed(String);

impl Failed {
    pub(crate) fn new(why: &str) -> Self {
        Self(why.to_owned())
    }
}

impl Broker {
    pub(crate) fn new(program: &Path, (dir, notes): (&Path, &Path), port: u16, advertised: SocketAddr) -> Self {
        let (program, dir, notes) = (program.to_owned(), dir.to_owned(), notes.to_owned());
        Self { program, dir, notes, port, advertised, starts: 0, child: None }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    pub(crate) fn starts(&self) -> u32 {
        self.starts
    }

    /// Starts the process and does not wait for what comes of it. Each second one answers ends before their markers
    /// are flushed.
    pub(crate) fn spawn(&mut self) {
        assert!(self.child.is_none(), "one broker at a time");
        self.starts += 1;
        let mut command = quiet(&self.program, &self.dir);
        let settings = [
            ("DATA_DIR", self.dir.join("data").display().to_string()),
            ("ADMIN__BIND", "127.0.0.1:0".to_owned()),
            ("LISTENERS__EXTERNAL__BIND", self.address().to_string()),
            ("LISTENERS__EXTERNAL__ADVERTISED", self.advertised.to_string()),
            ("MARKER_SYNC", if self.starts.is_multiple_of(2) { "redo" } else { "answer" }.to_owned()),
            ("TOPICS__SEGMENT_BYTES", (1 << 20).to_string()),
            // Batches made here carry an old timestamp, and a full disk has whatever has expired removed at once.
            ("TOPICS__RETENTION_MS", "-1".to_owned()),
            ("GROUPS__MIN_SESSION_TIMEOUT_MS", "1000".to_owned()),
        ];
        for (name, value) in settings {
            command.env(format!("ONCELOG_{name}"), value);
        }
        let log = File::options().create(true).append(true).open(self.notes.join("broker.log")).unwrap();
        let child = self.run(&mut command, log);
        let mut pid = File::create(self.notes.join("broker.pid")).unwrap();
        write!(pid, "{}", child.id()).unwrap();
        self.child = Some(child);
    }

    fn run(&self, command: &mut Command, log: File) -> Child {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log).spawn();
        child.unwrap_or_else(|error| panic!("{}: {error}", self.program.display()))
    }

    /// Waits until it answers.
    pub(crate) fn serves(&mut self) -> Result<(), Failed> {
        let began = now();
        loop {
            self.runs()?;
            if is_answered(self.address()) {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                return Err(Failed(format!("the broker does not serve within {PATIENCE:?}")));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether nothing ended it that was not meant to.
    pub(crate) fn runs(&mut self) -> Result<(), Failed> {
        match self.child.as_mut().unwrap().try_wait().unwrap() {
            None => Ok(()),
            Some(status) => {
                self.child = None;
                Err(Failed(format!("the broker ended by itself: {status}")))
            }
        }
    }

    /// SIGKILL, in the middle of whatever it does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// SIGSTOP, and after a while SIGCONT.
    pub(crate) fn freeze(&mut self, how_long: Duration) {
        self.signal(Signal::STOP);
        std::thread::sleep(how_long);
        self.signal(Signal::CONT);
    }

    /// SIGTERM, and the clean end that must follow.
    pub(crate) fn terminate(&mut self) -> Result<(), Failed> {
        self.signal(Signal::TERM);
        let mut child = self.child.take().unwrap();
        let began = now();
        while began.elapsed() < PATIENCE {
            match child.try_wait().unwrap() {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(Failed(format!("told to stop, the broker ended with {status}"))),
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        Err(Failed(format!("told to stop, the broker did not within {PATIENCE:?}")))
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.child.as_ref().unwrap()), signal).unwrap();
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Whether an ApiVersions of nobody is answered.
fn is_answered(address: SocketAddr) -> bool {
    const ASKED: &[u8] = &[0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff];
    let ask = || {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.write_all(ASKED)?;
        stream.read_exact(&mut [0; 4])
    };
    match ask() {
        Ok(()) => true,
        Err(error) => {
            let passing = [ErrorKind::ConnectionRefused, ErrorKind::ConnectionReset, ErrorKind::UnexpectedEof];
            let passing = passing.contains(&error.kind()) || error.kind() == ErrorKind::WouldBlock;
            assert!(passing || error.kind() == ErrorKind::BrokenPipe, "asking the broker: {error}");
            false
        }
    }
}

//! The broker that a replay starts: its process, or one inside this process whose disk can be told to fail.

use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use oncelog::config::{Config, HostPort};
use oncelog::server::{Parts, Running, start};
use oncelog::store::faults::{Fault, Faults, FaultyDisk, Operation, Rule};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::play::Gate;

/// A topic of this name cannot be given markers while they are held back.
const HELD: &str = "held-";

/// The program as it ships, on a free port and a directory of its own.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    pub(crate) address: SocketAddr,
    dir: TempDir,
}

impl Process {
    pub(crate) fn start(program: &Path) -> std::io::Result<Self> {
        let dir = TempDir::new()?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut command = Command::new(std::path::absolute(program)?);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("ONCELOG_") || name.starts_with("KAFKA_"))
        {
            command.env_remove(name);
        }
        let settings = [
            ("DATA_DIR", dir.path().join("data").display().to_string()),
            ("ADMIN__BIND", "127.0.0.1:0".to_owned()),
            ("LISTENERS__EXTERNAL__BIND", address.to_string()),
            ("LISTENERS__EXTERNAL__ADVERTISED", address.to_string()),
            ("STORAGE__RESERVE_BYTES", "0".to_owned()),
        ];
        for (name, value) in settings {
            command.env(format!("ONCELOG_{name}"), value);
        }
        let log = File::create(dir.path().join("broker.log"))?;
        let child =
            command.current_dir(dir.path()).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?;
        let mut process = Self { child, address, dir };
        for _ in 0..1_000 {
            if TcpStream::connect(address).is_ok() {
                return Ok(process);
            }
            if let Some(status) = process.child.try_wait()? {
                return Err(std::io::Error::other(format!("the broker ended: {status}\n{}", process.log())));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(std::io::Error::other(format!("the broker does not serve\n{}", process.log())))
    }

    /// The end of what the broker has said.
    pub(crate) fn log(&self) -> String {
        let text = std::fs::read_to_string(self.dir.path().join("broker.log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().rev().take(20).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop((self.child.kill(), self.child.wait()));
    }
}

/// A broker inside this process.
pub(crate) struct Inside {
    runtime: Runtime,
    running: Option<Running>,
    pub(crate) address: SocketAddr,
    faults: Faults,
    _dir: TempDir,
}

impl Inside {
    pub(crate) fn start() -> std::io::Result<Self> {
        let dir = TempDir::new()?;
        let mut config = Config::builtin();
        config.data_dir = dir.path().join("data");
        config.listeners.external.bind = HostPort::new("127.0.0.1", 0);
        "127.0.0.1".clone_into(&mut config.listeners.external.advertised.host);
        config.admin.bind = HostPort::new("127.0.0.1", 0);
        config.storage.reserve_bytes = 0;
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let faults = Faults::default();
        let mut parts = Parts::real(&config);
        let own = faults.clone();
        parts.wrap_disk = Box::new(move |disk| Arc::new(FaultyDisk::new(disk, own)));
        let running =
            runtime.block_on(start(config, parts)).map_err(|error| std::io::Error::other(error.to_string()))?;
        let address = running.external().ok_or_else(|| std::io::Error::other("no listener"))?;
        Ok(Self { runtime, running: Some(running), address, faults, _dir: dir })
    }
}

impl Gate for Inside {
    fn hold(&self) {
        self.faults.add(Rule::always(Operation::Write, HELD, Fault::NoSpace));
    }

    fn release(&self) {
        self.faults.lift();
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            self.runtime.block_on(running.crash());
        }
    }
}

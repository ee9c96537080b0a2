//! A broker in this process, on free ports and a directory of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oncelog::config::{Config, HostPort};
use oncelog::server::{Parts, Running, start};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::raw::Client;

/// A broker and what it runs on. Ends as a crash would when it is dropped.
pub(crate) struct TestBroker {
    runtime: Runtime,
    running: Option<Running>,
    config: Config,
    broken: Arc<AtomicBool>,
    dir: Arc<TempDir>,
}

/// The built-in configuration on free ports, with this directory.
pub(crate) fn config(dir: &TempDir) -> Config {
    let mut config = Config::builtin();
    config.data_dir = dir.path().join("data");
    config.listeners.external.bind = HostPort::new("127.0.0.1", 0);
    config.listeners.external.advertised.host = "127.0.0.1".to_owned();
    config.admin.bind = HostPort::new("127.0.0.1", 0);
    config.storage.reserve_bytes = 0;
    config
}

impl TestBroker {
    /// A broker with the built-in configuration.
    pub(crate) fn start() -> Self {
        Self::with(|_| {})
    }

    /// A broker whose configuration was changed.
    pub(crate) fn with(change: impl FnOnce(&mut Config)) -> Self {
        Self::on(change, |_| {})
    }

    /// A broker whose configuration and parts were changed: a clock to be turned by hand, a disk that fails.
    pub(crate) fn on(change: impl FnOnce(&mut Config), rebuild: impl FnOnce(&mut Parts)) -> Self {
        let dir = Arc::new(TempDir::new().unwrap());
        let mut config = config(&dir);
        change(&mut config);
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let mut broker = Self { runtime, running: None, config, broken: Arc::default(), dir };
        broker.start_again(rebuild);
        broker
    }

    /// Starts over what was stopped or has crashed, on the same directory; ports may be others.
    pub(crate) fn start_again(&mut self, rebuild: impl FnOnce(&mut Parts)) {
        assert!(self.running.is_none(), "the broker still runs");
        let broken = Arc::new(AtomicBool::new(false));
        self.broken = Arc::clone(&broken);
        let mut parts = Parts::real(&self.config);
        parts.on_broken = Box::new(move |_| broken.store(true, Ordering::Release));
        rebuild(&mut parts);
        let started = self.runtime.block_on(start(self.config.clone(), parts));
        self.running = Some(started.unwrap_or_else(|error| panic!("the broker does not start: {error}")));
    }

    /// A connection to the external listener.
    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.address())
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.running().external().unwrap()
    }

    pub(crate) fn admin(&self) -> SocketAddr {
        self.running().admin
    }

    pub(crate) fn running(&self) -> &Running {
        self.running.as_ref().expect("a broker that runs")
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Changes the configuration of the next start.
    pub(crate) fn reconfigure(&mut self, change: impl FnOnce(&mut Config)) {
        change(&mut self.config);
    }

    /// The directory in which the broker's `data` lies.
    pub(crate) fn dir(&self) -> &TempDir {
        &self.dir
    }

    /// Whether the store said that it is not known any more what is on disk.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// Ends it in order.
    pub(crate) fn stop(&mut self) {
        let running = self.running.take().expect("a broker that runs");
        let stopped = self.runtime.block_on(running.stop());
        stopped.unwrap_or_else(|error| panic!("the broker does not stop in order: {error}"));
    }

    /// Ends it as a crash would: nothing is flushed.
    pub(crate) fn crash(&mut self) {
        let running = self.running.take().expect("a broker that runs");
        self.runtime.block_on(running.crash());
    }
}

impl Drop for TestBroker {
    fn drop(&mut self) {
        if self.running.is_some() {
            self.crash();
        }
    }
}

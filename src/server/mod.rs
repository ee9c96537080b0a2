//! Builds everything once, in order; ends everything once, in order.

mod assemble;
mod ops;
mod restart;
mod wrong_door;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{Instrument, Span};

use crate::api::{self, Ctx, Handlers};
use crate::clock::Clock;
use crate::config::{Config, HostPort, ListenerName};
use crate::net::{Edge, Limits};
use crate::runtime::broker::Broker;
use crate::runtime::post::LedgerLetter;
use crate::runtime::router::OnBroken;
use crate::store::StoreError;
use crate::store::dir_lock::DirLock;
use crate::store::disk::Disk;
use crate::store::meta::LedgerStore;
use crate::telemetry::{self, Traces};
use assemble::Engines;
use wrong_door::WrongDoor;

/// Why the broker could not start, or had to end, in one sentence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(String);

impl From<StoreError> for StartError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full(_) => Self(format!(
                "{error}: a start must store a little, and what was set aside for that is used up: free some space where \
                 data_dir is, and start again"
            )),
            StoreError::Damaged(_) | StoreError::Broken(_) => Self(error.to_string()),
        }
    }
}

/// Puts something around a part.
pub type Wrap<T> = Box<dyn FnOnce(T) -> T + Send>;

/// What a broker is built on; tests put their own in.
pub struct Parts {
    /// The clock.
    pub clock: Clock,
    /// Changes the disk that logs are written to.
    pub wrap_disk: Wrap<Arc<dyn Disk>>,
    /// Changes the store that the ledger writes to.
    pub wrap_store: Wrap<Box<dyn LedgerStore>>,
    /// What happens when it is not known any more what is on disk.
    pub on_broken: OnBroken,
    /// Whoever keeps traces, if they are kept.
    pub traces: Option<Arc<Traces>>,
}

impl Parts {
    /// The real ones.
    #[must_use]
    pub fn real(config: &Config) -> Self {
        let clock = Clock::system();
        let (policy, since) = (config.on_sync_failure, clock.clone());
        Self {
            clock,
            wrap_disk: Box::new(|disk| disk),
            wrap_store: Box::new(|store| store),
            on_broken: Box::new(move |error| restart::start_over(error, policy, since.now())),
            traces: None,
        }
    }
}

/// A broker that serves.
pub struct Running {
    /// Where each listener listens.
    pub listening: Vec<(ListenerName, SocketAddr)>,
    /// Where the admin port listens.
    pub admin: SocketAddr,
    /// The broker itself.
    pub broker: Arc<Broker>,
    stop: watch::Sender<bool>,
    edges: JoinSet<()>,
    engines: Engines,
    _lock: DirLock,
}

/// Runs the broker until `stop` is ready and everything under way has been finished. What happens is told to `traces`.
///
/// # Errors
/// What kept it from starting, or from ending in order.
pub async fn run(
    config: Config,
    traces: Option<Arc<Traces>>,
    stop: impl Future<Output = ()>,
) -> Result<(), StartError> {
    restart::pause().await;
    let span = stage(traces.as_ref(), "start");
    let parts = Parts { traces, ..Parts::real(&config) };
    let welcome = config.clone();
    let running = start(config, parts).instrument(span).await?;
    let bound: Vec<(ListenerName, u16)> = running.listening.iter().map(|(name, at)| (*name, at.port())).collect();
    for line in welcome.welcome(&bound) {
        tracing::info!("{line}");
    }
    tracing::info!(admin = %running.admin, data_dir = %welcome.data_dir.display(), "ready");
    stop.await;
    running.stop().await
}

/// Starts a broker: when this returns, clients are served.
///
/// # Errors
/// One sentence that says what is wrong.
pub async fn start(config: Config, parts: Parts) -> Result<Running, StartError> {
    let config = Arc::new(config);
    let doors = Doors::bind(&config)?;
    let root = config.data_dir.clone();
    let lock = lock(&root)?;
    let traces = parts.traces.clone();
    let (engines, broker) = assemble::engines(&config, parts)?;
    let broker = Arc::new(broker);
    let (stop, stopping) = watch::channel(false);
    let mut edges = JoinSet::new();
    let (listeners, admin) = doors.listen()?;
    let mut listening = Vec::new();
    let mut advertised = Vec::new();
    for (name, listener) in &listeners {
        let at = listener.local_addr().map_err(|error| StartError(format!("{}: {error}", name.as_str())))?;
        let told = config.listener(*name).map(|own| own.advertised.at(at.port()));
        advertised.extend(told.map(|told| (Arc::from(name.as_str()), told.host, told.port)));
        listening.push((*name, at));
    }
    let bound: Vec<(ListenerName, u16)> = listening.iter().map(|(name, at)| (*name, at.port())).collect();
    let wrong_door = WrongDoor::new(&config, &bound);
    let ctx = Ctx { broker: Arc::clone(&broker), config: Arc::clone(&config), advertised };
    let observer = Arc::new(ops::Watcher::new(Arc::clone(&broker), wrong_door));
    let requests = traces.clone().map(|traces| traces as Arc<dyn api::traces::Traces>);
    let handlers = Handlers::new(Arc::new(ctx)).traced(requests);
    let edge = Edge::new(Arc::new(handlers), observer, limits(&config));
    for (name, listener) in listeners {
        let (edge, stopping) = (Arc::clone(&edge), stopping.clone());
        edges.spawn(crate::net::serve(listener, Arc::from(name.as_str()), edge, stopping));
    }
    let admin_at = admin.local_addr().map_err(|error| StartError(format!("admin: {error}")))?;
    let bound = listening.iter().map(|(name, at): &(ListenerName, SocketAddr)| (*name, at.port())).collect();
    let operations = Arc::new(ops::Ops::new(Arc::clone(&broker), Arc::clone(&config), (bound, traces)));
    edges.spawn(ops::watch_late(Arc::clone(&operations), stopping.clone()));
    edges.spawn(crate::http::serve(admin, operations, stopping));
    broker.metrics().started(broker.clock().exact());
    Ok(Running { listening, admin: admin_at, broker, stop, edges, engines, _lock: lock })
}

impl Running {
    /// Where the external listener listens.
    #[must_use]
    pub fn external(&self) -> Option<SocketAddr> {
        self.listening.iter().find(|(name, _)| *name == ListenerName::External).map(|(_, at)| *at)
    }

    /// Ends in order: no new requests, those under way finish, logs and rows go to disk, the directory is marked clean.
    ///
    /// # Errors
    /// What went wrong; the next start then recovers as after a crash.
    pub async fn stop(mut self) -> Result<(), StartError> {
        // Parked fetches, joins and waiting ends are let go first, or their connections would not finish.
        self.broker.let_go();
        self.broker.router().to_ledger(LedgerLetter::Settle);
        self.stop.send_replace(true);
        while self.edges.join_next().await.is_some() {}
        let engines = self.engines;
        let ended = tokio::task::spawn_blocking(move || engines.end()).await;
        ended.map_err(|error| StartError(format!("the end was cut short: {error}")))?
    }

    /// Ends as a crash would: nothing is flushed, nothing is marked. For tests.
    pub async fn crash(mut self) {
        self.edges.shutdown().await;
        self.engines.abandon();
    }
}

/// A part of a start, as a span if traces are kept.
fn stage(traces: Option<&Arc<Traces>>, name: &'static str) -> Span {
    traces.map_or_else(Span::none, |_| telemetry::stage(name))
}

/// Sockets bound before anything is opened, so that a taken port is said before the data directory is touched, and
/// listened on only when clients can be served.
struct Doors {
    listeners: Vec<(ListenerName, TcpSocket)>,
    admin: TcpSocket,
}

impl Doors {
    fn bind(config: &Config) -> Result<Self, StartError> {
        let mut listeners = Vec::new();
        for name in [ListenerName::External, ListenerName::Internal] {
            if let Some(own) = config.listener(name) {
                listeners.push((name, bind(&format!("listeners.{}.bind", name.as_str()), &own.bind)?));
            }
        }
        Ok(Self { listeners, admin: bind("admin.bind", &config.admin.bind)? })
    }

    fn listen(self) -> Result<(Vec<(ListenerName, TcpListener)>, TcpListener), StartError> {
        let listen =
            |socket: TcpSocket| socket.listen(1024).map_err(|error| StartError(format!("cannot listen: {error}")));
        let mut listeners = Vec::new();
        for (name, socket) in self.listeners {
            listeners.push((name, listen(socket)?));
        }
        Ok((listeners, listen(self.admin)?))
    }
}

fn bind(setting: &str, at: &HostPort) -> Result<TcpSocket, StartError> {
    let failed = |error: std::io::Error| {
        let taken = error.kind() == std::io::ErrorKind::AddrInUse;
        let advice = if taken { "; another process has the port: end it, or set another one" } else { "" };
        StartError(format!("{setting} = {at} cannot be bound: {error}{advice}"))
    };
    let mut found = std::net::ToSocketAddrs::to_socket_addrs(&(at.host.as_str(), at.port)).map_err(failed)?;
    let address = found.next().ok_or_else(|| StartError(format!("{setting} = {at} names no address")))?;
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(failed)?;
    socket.set_reuseaddr(true).map_err(failed)?;
    socket.bind(address).map_err(failed)?;
    Ok(socket)
}

/// How often, and with which pauses, a lock is tried again that somebody has.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(25);

fn lock(root: &Path) -> Result<DirLock, StartError> {
    let shown = root.display();
    // In a container the user is often not the one that the directory was made for.
    let user = rustix::process::geteuid().as_raw();
    crate::store::os_disk::OsDisk::new(root)
        .map_err(|error| StartError(format!("data_dir = {shown} cannot be used by user {user}: {error}")))?;
    // A process that is being started by another thread holds copies of all descriptors for a moment: not every lock that is
    // held is another broker's.
    let mut taken = DirLock::take(root);
    for _ in 0..LOCK_TRIES {
        match &taken {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => std::thread::sleep(LOCK_PAUSE),
            Ok(_) | Err(_) => break,
        }
        taken = DirLock::take(root);
    }
    taken.map_err(|error| {
        StartError(if error.kind() == std::io::ErrorKind::WouldBlock {
            format!("data_dir = {shown} is in use by another broker; end it, or set another directory")
        } else {
            format!("data_dir = {shown} cannot be written by user {user}: {error}")
        })
    })
}

fn limits(config: &Config) -> Limits {
    let net = &config.net;
    let mut limits = Limits {
        max_connections: net.max_connections,
        in_flight_bytes: net.request_memory_bytes,
        idle_timeout: Duration::from_millis(u64::try_from(net.idle_timeout_ms).unwrap_or(u64::MAX)),
        ..Limits::default()
    };
    limits.frame.max_bytes = net.max_request_bytes;
    limits.frame.plain_max_bytes = limits.frame.plain_max_bytes.min(net.max_request_bytes);
    limits
}

/// A thread by name, or one sentence.
fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StartError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|error| StartError(format!("thread {name} cannot start: {error}")))
}

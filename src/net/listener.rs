//! Accepts connections, as many as it may, and sees them off when the broker stops.

use super::budget::Budget;
use super::connection;
use super::end::Complaints;
use super::limits::Limits;
use super::observer::Observer;
use crate::api::service::{Peer, Service};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

/// What all listeners share.
pub struct Edge {
    pub(super) service: Arc<dyn Service>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) limits: Limits,
    pub(super) budget: Budget,
    complaints: Complaints,
    connections: AtomicU64,
}

impl Edge {
    /// An edge in front of `service`.
    #[must_use]
    pub fn new(service: Arc<dyn Service>, observer: Arc<dyn Observer>, limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            service,
            observer,
            budget: Budget::new(&limits),
            limits,
            complaints: Complaints::default(),
            connections: AtomicU64::new(0),
        })
    }

    fn peer(&self, stream: &TcpStream, address: SocketAddr, listener: &Arc<str>) -> Arc<Peer> {
        let connection = self.connections.fetch_add(1, Ordering::Relaxed);
        let local_port = stream.local_addr().map_or(0, |local| local.port());
        Arc::new(Peer { address, listener: Arc::clone(listener), connection, local_port })
    }

    /// The memory that requests in flight may take.
    #[must_use]
    pub const fn budget(&self) -> &Budget {
        &self.budget
    }
}

/// Serves one listener until `shutdown` says true (or its sender is gone): then accepts no more, lets requests in
/// flight finish within [`Limits::drain`], and returns when every connection is closed.
pub async fn serve(listener: TcpListener, name: Arc<str>, edge: Arc<Edge>, mut shutdown: watch::Receiver<bool>) {
    let places = Arc::new(Semaphore::new(edge.limits.max_connections.min(Semaphore::MAX_PERMITS)));
    let mut connections = JoinSet::new();
    let mut pause = SHORTEST_PAUSE;
    let stopping = shutdown.clone();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stopped(&mut shutdown) => break,
            Some(_ended) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = accept(&listener, &places) => accepted,
        };
        match accepted {
            Ok((place, stream, address)) => {
                pause = SHORTEST_PAUSE;
                let peer = edge.peer(&stream, address, &name);
                let (edge, stopping) = (Arc::clone(&edge), stopping.clone());
                connections.spawn(async move {
                    attend(stream, &peer, &edge, stopping).await;
                    drop(place);
                });
            }
            Err(error) => {
                edge.complaints.accept_failed(&name, &error);
                edge.observer.accept_failed(&name);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
    drop(listener);
    // Each connection keeps the deadline itself; the second only catches one whose handler does not yield.
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(edge.limits.drain + Duration::from_secs(1), all_ended).await.is_err() {
        connections.shutdown().await;
    }
}

/// Between attempts when accepting fails: for want of file descriptors, each attempt fails until some are closed.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Comes when the broker stops.
pub(super) async fn stopped(shutdown: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone: nobody could tell us any more.
    drop(shutdown.wait_for(|stop| *stop).await);
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(OwnedSemaphorePermit, TcpStream, SocketAddr)> {
    let place = Arc::clone(places).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, address) = listener.accept().await?;
    Ok((place, stream, address))
}

/// Serves one connection and says how it ended.
async fn attend(stream: TcpStream, peer: &Arc<Peer>, edge: &Edge, shutdown: watch::Receiver<bool>) {
    edge.observer.opened(peer);
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(address = %peer.address, "answers may be delayed: {error}");
    }
    let (read, write) = stream.into_split();
    let end = connection::run(read, write, peer, edge, shutdown).await;
    edge.complaints.connection_ended(peer, &end);
    edge.observer.closed(peer, &end);
}

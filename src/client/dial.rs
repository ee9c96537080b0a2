//! From a name to a socket, one hop at a time, so that it can be said which hop fails.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Failure;
use crate::config::HostPort;

/// The addresses a name stands for, each once, in the order in which they are to be tried.
///
/// # Errors
/// Why there are none.
pub async fn resolve(at: &HostPort, within: Duration) -> io::Result<Vec<SocketAddr>> {
    let looked_up = timeout(within, tokio::net::lookup_host((at.host.as_str(), at.port))).await;
    let found = looked_up.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() { Err(io::Error::from(io::ErrorKind::AddrNotAvailable)) } else { Ok(addresses) }
}

/// A connection to one address.
///
/// # Errors
/// What the system says; `TimedOut` when it says nothing for so long.
pub async fn connect(address: SocketAddr, within: Duration) -> io::Result<TcpStream> {
    let connected = timeout(within, TcpStream::connect(address)).await;
    let stream = connected.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A connection to whichever of a name's addresses answers first in their order.
///
/// # Errors
/// Why none does.
pub async fn connect_to(at: &HostPort, within: Duration) -> Result<(SocketAddr, TcpStream), Failure> {
    let unreachable = |why: String| Failure::Unreachable(format!("{at}: {why}"));
    let addresses = resolve(at, within).await.map_err(|error| unreachable(unresolved(&error)))?;
    let mut last = String::new();
    for address in addresses {
        match connect(address, within).await {
            Ok(stream) => return Ok((address, stream)),
            Err(error) => last = unconnected(&error),
        }
    }
    Err(unreachable(last))
}

/// What it means that a name has no address.
#[must_use]
pub fn unresolved(error: &io::Error) -> String {
    let late = error.kind() == io::ErrorKind::TimedOut;
    if late { "the name is not resolved in time" } else { "the name cannot be resolved here" }.to_owned()
}

/// What it means that an address cannot be connected to.
#[must_use]
pub fn unconnected(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::TimedOut {
        "nothing answers".to_owned()
    } else if error.kind() == io::ErrorKind::ConnectionRefused {
        "nobody listens there".to_owned()
    } else {
        format!("it cannot be connected to: {error}")
    }
}

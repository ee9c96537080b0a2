//! `oncelog healthcheck`: asks a running broker's admin port, in a process of its own and without a runtime.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::config::HostPort;

/// How long each step may take; a container's health check gives about this much in all.
const STEP: Duration = Duration::from_secs(2);
/// An answer longer than this is not ours.
const MAX_ANSWER_BYTES: u64 = 65_536;

/// Asks `/readyz` of the broker whose `admin.bind` is given.
///
/// # Errors
/// Why it is not ready, or why it could not be asked, in one sentence.
pub fn ready(admin: &HostPort) -> Result<(), String> {
    if admin.port == 0 {
        return Err("admin.bind has port 0, which any free port may be: write a port to make it known".to_owned());
    }
    let address = admin.local();
    let answer = ask(&address).map_err(|error| format!("nobody answers at {address} (admin.bind): {error}"))?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let mut status = head.lines().next().unwrap_or_default().split(' ').skip(1);
    match status.next() {
        Some("200") => Ok(()),
        Some("503") => Err(body.trim_end().replace("\n- ", "; ")),
        Some(_) | None => Err(format!("what answers at {address} is not oncelog's admin port")),
    }
}

fn ask(address: &HostPort) -> io::Result<String> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for candidate in (address.host.as_str(), address.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&candidate, STEP) {
            Ok(socket) => return exchange(socket, address),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn exchange(mut socket: TcpStream, address: &HostPort) -> io::Result<String> {
    socket.set_read_timeout(Some(STEP))?;
    socket.set_write_timeout(Some(STEP))?;
    write!(socket, "GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    socket.take(MAX_ANSWER_BYTES).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

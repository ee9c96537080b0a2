//! Asks a running broker's admin port, in a process of its own and without a runtime.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::config::HostPort;

/// How long each step may take; a container's health check gives about this much in all.
const STEP: Duration = Duration::from_secs(2);
/// A page longer than this is not asked for.
const MAX_ANSWER_BYTES: u64 = 64 << 20;

/// What came back.
pub(super) struct Answer {
    /// The status, as a number.
    pub(super) status: u16,
    /// The body.
    pub(super) body: String,
}

/// A request without a body. `patience` is how long the answer may take to begin.
///
/// # Errors
/// Why there is no answer, or that it is no answer of ours, in one sentence.
pub(super) fn ask(address: &HostPort, request: &Request<'_>, patience: Duration) -> Result<Answer, String> {
    let Some(text) = exchange(address, request, patience)
        .map_err(|error| format!("nobody answers at {address} (admin.bind): {error}"))?
    else {
        return Err(format!("what answers at {address} is not oncelog's admin port"));
    };
    Ok(text)
}

/// What is asked for.
pub(super) struct Request<'a> {
    /// `GET` or `POST`.
    pub(super) method: &'a str,
    /// The address on the port.
    pub(super) path: &'a str,
    /// Who asks, where something is to be done.
    pub(super) operator: Option<&'a str>,
}

fn exchange(address: &HostPort, request: &Request<'_>, patience: Duration) -> io::Result<Option<Answer>> {
    let mut socket = connect(address)?;
    socket.set_read_timeout(Some(patience.max(STEP)))?;
    socket.set_write_timeout(Some(STEP))?;
    let Request { method, path, operator } = request;
    let who = operator.map(|name| format!("X-Oncelog-Operator: {name}\r\n")).unwrap_or_default();
    write!(
        socket,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\n{who}Content-Length: 0\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    socket.take(MAX_ANSWER_BYTES).read_to_end(&mut answer)?;
    Ok(parsed(&String::from_utf8_lossy(&answer)))
}

fn connect(address: &HostPort) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for candidate in (address.host.as_str(), address.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&candidate, STEP) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn parsed(answer: &str) -> Option<Answer> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let first = head.lines().next()?.strip_prefix("HTTP/1.1 ")?;
    Some(Answer { status: first.split(' ').next()?.parse().ok()?, body: body.to_owned() })
}

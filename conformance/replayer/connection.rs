//! One connection to a broker, which sends what it is given and shows what comes back.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// What came of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A frame: what stands behind the correlation id.
    Frame(Vec<u8>),
    /// The other end closed the connection.
    Closed,
    /// Nothing, for as long as it was waited for.
    Silent,
}

#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    /// Frames that came while another one was waited for.
    early: BTreeMap<i32, Vec<u8>>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(Duration::from_secs(10)))?;
        Ok(Self { stream, early: BTreeMap::new() })
    }

    /// False if the other end is not there any more.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// The answer with this correlation id.
    pub(crate) fn receive(&mut self, id: i32, patience: Duration) -> std::io::Result<Answer> {
        self.stream.set_read_timeout(Some(patience))?;
        loop {
            if let Some(frame) = self.early.remove(&id) {
                return Ok(Answer::Frame(frame));
            }
            let mut head = [0; 8];
            if let Some(ended) = self.read(&mut head)? {
                return Ok(ended);
            }
            let size = i32::from_be_bytes(head[..4].try_into().unwrap_or_default());
            let own = i32::from_be_bytes(head[4..].try_into().unwrap_or_default());
            let mut frame = vec![0; usize::try_from(size).unwrap_or_default().saturating_sub(4)];
            if let Some(ended) = self.read(&mut frame)? {
                return Ok(ended);
            }
            self.early.insert(own, frame);
        }
    }

    fn read(&mut self, into: &mut [u8]) -> std::io::Result<Option<Answer>> {
        match self.stream.read_exact(into) {
            Ok(()) => Ok(None),
            Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
                Ok(Some(Answer::Closed))
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Ok(Some(Answer::Silent))
            }
            Err(error) => Err(error),
        }
    }
}

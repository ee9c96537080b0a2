//! A Kafka client without opinions: sends what it is told, in the version it is told, and shows what comes back.

pub(crate) mod admin;
pub(crate) mod batch;
pub(crate) mod data;
pub(crate) mod groups;
pub(crate) mod txn;

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};

/// How long an answer may take before the test has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// One connection.
pub(crate) struct Client {
    stream: TcpStream,
    next_id: i32,
    client_id: Option<StrBytes>,
}

/// A request that is on its way; its answer is asked for by this.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    id: i32,
    version: i16,
}

/// What a connection showed until its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Every byte that came before the end.
    pub(crate) received: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).unwrap()
    }

    /// The same where the other end may be away.
    pub(crate) fn try_connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, next_id: 1, client_id: Some(StrBytes::from_static_str("raw")) })
    }

    /// The same connection under another client id.
    pub(crate) fn named(mut self, client_id: Option<&str>) -> Self {
        self.client_id = client_id.map(text);
        self
    }

    /// Asks and waits for the answer.
    pub(crate) fn call<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        let sent = self.send(version, request);
        self.receive::<R>(sent)
    }

    /// The same where the other end may go away meanwhile. What it says before must be right all the same.
    pub(crate) fn try_call<R: Request>(&mut self, version: i16, request: &R) -> io::Result<R::Response> {
        let sent = self.try_send(version, request)?;
        self.try_receive::<R>(sent)
    }

    /// Asks without waiting, where the other end may go away meanwhile.
    pub(crate) fn try_send<R: Request>(&mut self, version: i16, request: &R) -> io::Result<Sent> {
        let (sent, frame) = self.number(version, request);
        self.stream.write_all(&frame)?;
        Ok(sent)
    }

    /// The answer to a request, if the other end is still there to give it.
    pub(crate) fn try_receive<R: Request>(&mut self, sent: Sent) -> io::Result<R::Response> {
        let frame = self.try_receive_frame()?;
        Ok(answer::<R>(sent, frame))
    }

    /// Asks without waiting; answers come in the order of the requests.
    pub(crate) fn send<R: Request>(&mut self, version: i16, request: &R) -> Sent {
        let (sent, frame) = self.number(version, request);
        self.send_bytes(&frame);
        sent
    }

    /// The next request of this connection, as it goes on the wire.
    fn number<R: Request>(&mut self, version: i16, request: &R) -> (Sent, Vec<u8>) {
        let mut body = BytesMut::new();
        request.encode(&mut body, version).unwrap();
        let sent = Sent { id: self.next_id, version };
        self.next_id += 1;
        (sent, frame::<R>(sent, self.client_id.clone(), &body))
    }

    /// The answer to a request; it must be the next one.
    pub(crate) fn receive<R: Request>(&mut self, sent: Sent) -> R::Response {
        let frame = self.receive_frame();
        answer::<R>(sent, frame)
    }

    /// The next frame, without its length.
    pub(crate) fn receive_frame(&mut self) -> Bytes {
        self.try_receive_frame().expect("a whole answer")
    }

    fn try_receive_frame(&mut self) -> io::Result<Bytes> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let mut frame = vec![0; usize::try_from(i32::from_be_bytes(length)).unwrap()];
        self.stream.read_exact(&mut frame)?;
        Ok(Bytes::from(frame))
    }

    /// Sends bytes as they are. That the other end has closed meanwhile is for the reading side to find out.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        match self.stream.write_all(bytes) {
            Err(error) if !is_end(error.kind()) => panic!("cannot send: {error}"),
            Ok(()) | Err(_) => {}
        }
    }

    /// Sends nothing more; reads go on.
    pub(crate) fn shut(&mut self) {
        if let Err(error) = self.stream.shutdown(Shutdown::Write) {
            assert_eq!(error.kind(), ErrorKind::NotConnected, "{error}");
        }
    }

    /// Everything up to the end of the connection, which must come.
    pub(crate) fn ended(mut self) -> Ended {
        let mut received = Vec::new();
        if let Err(error) = self.stream.read_to_end(&mut received) {
            assert!(is_end(error.kind()), "the connection stays open: {error}");
        }
        Ended { received }
    }
}

/// A connection that the other end closed with our bytes unread is reset.
fn is_end(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted)
}

/// What a frame says, which must answer this request and hold no byte more than its version has (C-113).
fn answer<R: Request>(sent: Sent, mut frame: Bytes) -> R::Response {
    let header = ResponseHeader::decode(&mut frame, R::Response::header_version(sent.version)).unwrap();
    assert_eq!(header.correlation_id, sent.id, "answers come in the order of the requests (V-133)");
    let response = R::Response::decode(&mut frame, sent.version).unwrap();
    assert!(!frame.has_remaining(), "{} bytes behind the answer to key {}", frame.remaining(), R::KEY);
    response
}

/// A whole frame: length, header as the version has it, body.
fn frame<R: Request>(sent: Sent, client_id: Option<StrBytes>, body: &[u8]) -> Vec<u8> {
    let header = RequestHeader::default()
        .with_request_api_key(R::KEY)
        .with_request_api_version(sent.version)
        .with_correlation_id(sent.id)
        .with_client_id(client_id);
    let mut rest = BytesMut::new();
    header.encode(&mut rest, R::header_version(sent.version)).unwrap();
    rest.put_slice(body);
    framed(&rest)
}

/// These bytes with their length in front.
pub(crate) fn framed(bytes: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(4 + bytes.len());
    frame.put_i32(i32::try_from(bytes.len()).unwrap());
    frame.put_slice(bytes);
    frame
}

pub(crate) fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

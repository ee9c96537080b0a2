//! One connection: frames, headers, versions.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{ApiVersionsRequest, RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Failure;
use crate::wire::Api;

/// The longest answer that is taken.
const MAX_ANSWER_BYTES: usize = 32 << 20;

/// A connection to a broker that has said which versions it serves.
pub struct Connection {
    stream: TcpStream,
    client_id: StrBytes,
    next_id: i32,
    patience: Duration,
    /// The lowest and the highest version, by API key.
    served: BTreeMap<i16, (i16, i16)>,
    /// Where the other end is.
    pub address: SocketAddr,
}

impl Connection {
    /// Asks whoever is at the other end which versions it serves. `patience` is how long any answer may take.
    ///
    /// # Errors
    /// No answer, or none of a Kafka broker.
    pub async fn begin(
        stream: TcpStream,
        address: SocketAddr,
        client_id: &str,
        patience: Duration,
    ) -> Result<Self, Failure> {
        let client_id = StrBytes::from_string(client_id.to_owned());
        let mut own = Self { stream, client_id, next_id: 1, patience, served: BTreeMap::new(), address };
        // Version 0 is the one that every broker answers.
        let answer = own.exchange(0, &ApiVersionsRequest::default()).await?;
        if answer.error_code != 0 {
            return Err(Failure::Refused { what: named::<ApiVersionsRequest>(), code: answer.error_code });
        }
        let rows = answer.api_keys.iter().map(|api| (api.api_key, (api.min_version, api.max_version)));
        own.served = rows.collect();
        Ok(own)
    }

    /// Asks in the highest of `versions` that the broker serves.
    ///
    /// # Errors
    /// No answer, or one that is none; after either the connection is of no use any more. That the answer holds an
    /// error code is not looked at here.
    pub async fn call<R: Request>(
        &mut self,
        versions: RangeInclusive<i16>,
        request: &R,
    ) -> Result<R::Response, Failure> {
        let (lowest, highest) = self.served.get(&R::KEY).copied().unwrap_or((0, -1));
        let version = highest.min(*versions.end());
        if version < lowest || !versions.contains(&version) {
            let (from, to) = versions.into_inner();
            let why = format!("the broker serves versions {lowest} to {highest}, this client asks in {from} to {to}");
            return Err(Failure::foreign(named::<R>(), why));
        }
        self.exchange(version, request).await
    }

    async fn exchange<R: Request>(&mut self, version: i16, request: &R) -> Result<R::Response, Failure> {
        let what = named::<R>();
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        let header = RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_correlation_id(id)
            .with_client_id(Some(self.client_id.clone()));
        let frame = framed(&header, R::header_version(version), |bytes| {
            request.encode(bytes, version).map_err(|error| error.to_string())
        });
        let frame = frame.map_err(|why| Failure::foreign(what, why))?;
        let patience = self.patience;
        let answered = timeout(patience, async {
            self.stream.write_all(&frame).await?;
            read_frame(&mut self.stream).await
        });
        let mut answer = match answered.await {
            Err(_) => return Err(Failure::Silent { what, after: patience }),
            Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(Failure::foreign(what, error.to_string()));
            }
            Ok(Err(error)) => return Err(Failure::Broken { what, error }),
            Ok(Ok(answer)) => answer,
        };
        let unreadable = |why: String| Failure::foreign(what, format!("the answer cannot be read: {why}"));
        let header = ResponseHeader::decode(&mut answer, R::Response::header_version(version));
        let header = header.map_err(|error| unreadable(error.to_string()))?;
        if header.correlation_id != id {
            return Err(Failure::foreign(what, "the answer is to another request"));
        }
        R::Response::decode(&mut answer, version).map_err(|error| unreadable(error.to_string()))
    }
}

/// Kafka's name for a request.
pub(super) fn named<R: Request>() -> &'static str {
    Api::from_key(R::KEY).map_or("a request", Api::name)
}

fn framed(
    header: &RequestHeader,
    header_version: i16,
    body: impl FnOnce(&mut BytesMut) -> Result<(), String>,
) -> Result<BytesMut, String> {
    let mut frame = BytesMut::new();
    frame.put_i32(0);
    header.encode(&mut frame, header_version).map_err(|error| error.to_string())?;
    body(&mut frame)?;
    let length = i32::try_from(frame.len().saturating_sub(4)).map_err(|error| error.to_string())?;
    if let Some(place) = frame.get_mut(..4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
    Ok(frame)
}

async fn read_frame(stream: &mut TcpStream) -> io::Result<Bytes> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).await?;
    let foreign = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidData, why));
    if &length == b"HTTP" {
        return foreign("what answers there speaks HTTP, not Kafka's protocol: is it the admin port?");
    }
    if length.starts_with(&[0x15, 3]) {
        return foreign("what answers there wants TLS, which this command does not speak");
    }
    let length = usize::try_from((&length[..]).get_i32()).unwrap_or(usize::MAX);
    if length > MAX_ANSWER_BYTES {
        return foreign("what answers there does not speak Kafka's protocol");
    }
    let mut frame = vec![0; length];
    stream.read_exact(&mut frame).await?;
    Ok(Bytes::from(frame))
}

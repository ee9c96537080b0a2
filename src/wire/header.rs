//! Request and response headers (V-102, V-103).

use super::apis::Api;
use super::codes;
use super::cursor::{Cursor, Malformed, Width};
use crate::engine::refusal::Refusal;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Tagged fields that a header may carry. No client sends any today; a newer one may send a few.
const HEADER_TAGS: u32 = 64;

/// Key and version, which were judged as the frame's opening.
const OPENING_BYTES: usize = 4;

/// What a request header says beyond key and version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHeader {
    /// Given back with the answer.
    pub correlation_id: i32,
    /// The client's name for itself, which it may leave out. Never a compact string, in no version (V-102).
    pub client_id: Option<String>,
}

/// Takes the header off a frame (without its length); what remains is the body.
///
/// # Errors
/// When the frame does not begin with a header of this API and version.
pub fn take_request(api: Api, version: i16, frame: &mut Bytes) -> Result<RequestHeader, Malformed> {
    let mut cursor = Cursor::new(frame);
    cursor.take(OPENING_BYTES)?;
    let correlation_id = cursor.i32()?;
    let client_id = match cursor.length(Width::Short)? {
        Some(length) => {
            let text = std::str::from_utf8(cursor.take(length)?).map_err(|_| Malformed::NotUtf8)?;
            Some(text.to_owned())
        }
        None => None,
    };
    if api.is_flexible(version) {
        cursor.skip_tags(&mut HEADER_TAGS.clone())?;
    }
    let taken = frame.len() - cursor.remaining();
    frame.advance(taken);
    Ok(RequestHeader { correlation_id, client_id })
}

/// The correlation id of a frame of which nothing more need be understood.
///
/// # Errors
/// When the frame is too short to hold one.
pub fn correlation_id(frame: &[u8]) -> Result<i32, Malformed> {
    let mut cursor = Cursor::new(frame);
    cursor.take(OPENING_BYTES)?;
    cursor.i32()
}

/// Length and response header in front of a body of this many bytes; `None` when no length can say it (V-136).
#[must_use]
pub fn response(api: Api, version: i16, correlation_id: i32, body_bytes: usize) -> Option<Bytes> {
    let tags = api.has_response_tags(version);
    let length = body_bytes.checked_add(if tags { 5 } else { 4 })?;
    let mut header = BytesMut::with_capacity(9);
    header.put_i32(i32::try_from(length).ok()?);
    header.put_i32(correlation_id);
    if tags {
        header.put_u8(0);
    }
    Some(header.freeze())
}

/// The answer to ApiVersions in a version we do not know: a body of version 0, UNSUPPORTED_VERSION, and one entry, the
/// range of ApiVersions itself. Clients take its maximum and ask again on the same connection (V-120, KIP-511).
#[must_use]
pub fn unsupported_api_versions() -> Bytes {
    let range = Api::ApiVersions.versions();
    let mut body = BytesMut::with_capacity(12);
    body.put_i16(codes::code(Refusal::UnsupportedVersion));
    body.put_i32(1);
    body.put_i16(Api::ApiVersions.key());
    body.put_i16(range.listed);
    body.put_i16(range.highest);
    body.freeze()
}

#[cfg(test)]
mod tests;

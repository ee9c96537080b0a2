//! Length-prefixed frames, judged by their first eight bytes: before anything is allocated for them.

use super::apis::Api;

/// How long a frame may be (V-101).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLimits {
    /// Of a Produce request, in bytes; Kafka's `socket.request.max.bytes`.
    pub max_bytes: usize,
    /// Of any other request, in bytes: nothing but records needs to be long.
    pub plain_max_bytes: usize,
}

impl Default for FrameLimits {
    fn default() -> Self {
        Self { max_bytes: 100 << 20, plain_max_bytes: 16 << 20 }
    }
}

/// What the first bytes of a frame say it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// A request that is served.
    Request(Api, i16),
    /// ApiVersions in a version we do not know: answered without a look at its body (V-120).
    UnknownApiVersions,
}

/// Why a frame is not a request to us; the connection is closed without an answer (V-101, V-104).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Foreign {
    /// Somebody speaks HTTP.
    #[error("an HTTP request on the Kafka port; metrics and health have a port of their own")]
    Http,
    /// Somebody speaks TLS.
    #[error("a TLS handshake on a listener without TLS; the client's security.protocol must be PLAINTEXT here")]
    Tls,
    /// A proxy announces its client.
    #[error("a PROXY protocol header; the load balancer in front must not send one")]
    Proxy,
    /// The length is below zero.
    #[error("a frame of negative length {0}")]
    Negative(i32),
    /// The length is above the limit.
    #[error("a frame of {length} bytes; {limit} are allowed")]
    TooLong {
        /// What the frame claims, in bytes.
        length: usize,
        /// What is allowed, in bytes.
        limit: usize,
    },
    /// The length is below that of the shortest request.
    #[error("a frame of {0} bytes, too short for a request")]
    TooShort(usize),
    /// No API that is offered has this key.
    #[error("a request with the unknown API key {0}")]
    UnknownApi(i16),
    /// The API is offered, not in this version.
    #[error("{api} in version {version}, which is not offered")]
    UnsupportedVersion {
        /// What is asked for.
        api: Api,
        /// In which version.
        version: i16,
    },
}

/// Bytes in front of a frame that hold its length.
pub const LENGTH_BYTES: usize = 4;

/// Key, version, correlation id and the length of the client id: no request is shorter.
const SHORTEST_BYTES: usize = 10;

/// The length of a frame from its first four bytes.
///
/// # Errors
/// When no request of ours has such a length.
pub fn length(first: [u8; LENGTH_BYTES], limits: &FrameLimits) -> Result<usize, Foreign> {
    let said = i32::from_be_bytes(first);
    let Ok(length) = usize::try_from(said) else {
        return Err(Foreign::Negative(said));
    };
    if length < SHORTEST_BYTES {
        return Err(Foreign::TooShort(length));
    }
    if length > limits.max_bytes {
        return Err(foreign_protocol(first).unwrap_or(Foreign::TooLong { length, limit: limits.max_bytes }));
    }
    Ok(length)
}

/// What a frame of this length is, from the key and version behind its length.
///
/// # Errors
/// When it is nothing that is offered, or too long for what it is.
pub fn opening(first: [u8; 4], length: usize, limits: &FrameLimits) -> Result<Opening, Foreign> {
    let [key_high, key_low, version_high, version_low] = first;
    let key = i16::from_be_bytes([key_high, key_low]);
    let version = i16::from_be_bytes([version_high, version_low]);
    let api = Api::from_key(key).ok_or(Foreign::UnknownApi(key))?;
    let limit = if api == Api::Produce { limits.max_bytes } else { limits.plain_max_bytes };
    if length > limit {
        return Err(Foreign::TooLong { length, limit });
    }
    if api.serves(version) {
        return Ok(Opening::Request(api, version));
    }
    if api == Api::ApiVersions {
        return Ok(Opening::UnknownApiVersions);
    }
    Err(Foreign::UnsupportedVersion { api, version })
}

/// What other protocols begin with; read as a length, each is above a hundred million.
fn foreign_protocol(first: [u8; LENGTH_BYTES]) -> Option<Foreign> {
    match &first {
        b"GET " | b"POST" | b"HEAD" | b"PUT " | b"DELE" | b"OPTI" | b"PATC" | b"CONN" | b"PRI " => Some(Foreign::Http),
        [0x16, 0x03, ..] => Some(Foreign::Tls),
        b"PROX" | b"\r\n\r\n" => Some(Foreign::Proxy),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

//! A group as it is kept on disk (G-481).
//!
//! ```text
//! version u8 = 1 · generation i32 · protocol type text? · state u8
//!   0 Empty   since i64
//!   1 Stable  leader text · protocol text · count u32 · members
//! member: id text · instance text? · client id text · host text · session i32 · rebalance i32 · place u64
//!         · assignment bytes · count u32 · (name text · metadata bytes)*
//! ```
//! Big-endian; text and bytes have a u32 length before them, `?` a byte 0 or 1. Unlike Kafka's record every protocol
//! of a member is kept, not only the chosen one, so that a restart does not make unchanged members look changed.

use std::sync::Arc;

use bytes::Bytes;

use super::Member;
use super::roster::Members;
use crate::engine::{InstanceId, MemberId};

const VERSION: u8 = 1;

/// The durable part of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRow {
    /// The generation that last synced, or that the group became empty with.
    pub generation: i32,
    /// The protocol type; `None` for a simple group.
    pub protocol_type: Option<Arc<str>>,
    /// The rest.
    pub state: RowState,
}

/// The two states a group can be found in after a restart (G-482).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowState {
    /// No members.
    Empty {
        /// Since when, wall-clock milliseconds.
        since_ms: i64,
    },
    /// Members with their assignments.
    Stable {
        /// Who leads.
        leader: MemberId,
        /// The chosen protocol.
        protocol: Arc<str>,
        /// The members by id.
        members: Arc<Members>,
    },
}

impl GroupRow {
    /// The row's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend(self.generation.to_be_bytes());
        put_option(&mut out, self.protocol_type.as_deref());
        match &self.state {
            RowState::Empty { since_ms } => {
                out.push(0);
                out.extend(since_ms.to_be_bytes());
            }
            RowState::Stable { leader, protocol, members } => {
                out.push(1);
                put_bytes(&mut out, leader.as_str().as_bytes());
                put_bytes(&mut out, protocol.as_bytes());
                put_count(&mut out, members.len());
                for member in members.values() {
                    put_member(&mut out, member);
                }
            }
        }
        out
    }

    /// Reads a row; `None` if the bytes are not one, which only damage can cause.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        if reader.u8()? != VERSION {
            return None;
        }
        let generation = reader.i32()?;
        let protocol_type = reader.option()?.map(Arc::from);
        let state = match reader.u8()? {
            0 => RowState::Empty { since_ms: i64::from_be_bytes(reader.array()?) },
            1 => reader.stable()?,
            _ => return None,
        };
        reader.0.is_empty().then_some(Self { generation, protocol_type, state })
    }
}

fn put_member(out: &mut Vec<u8>, member: &Member) {
    put_bytes(out, member.id.as_str().as_bytes());
    put_option(out, member.instance.as_ref().map(InstanceId::as_str));
    put_bytes(out, member.client_id.as_bytes());
    put_bytes(out, member.client_host.as_bytes());
    out.extend(member.session_timeout_ms.to_be_bytes());
    out.extend(member.rebalance_timeout_ms.to_be_bytes());
    out.extend(member.place.to_be_bytes());
    put_bytes(out, &member.assignment);
    put_count(out, member.protocols.len());
    for (name, metadata) in &member.protocols {
        put_bytes(out, name.as_bytes());
        put_bytes(out, metadata);
    }
}

/// A length beyond u32 would need a request beyond the frame limit, so it saturates instead of failing.
fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend(u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_count(out, bytes.len());
    out.extend(bytes);
}

fn put_option(out: &mut Vec<u8>, text: Option<&str>) {
    out.push(u8::from(text.is_some()));
    if let Some(text) = text {
        put_bytes(out, text.as_bytes());
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*array)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_be_bytes)
    }

    fn count(&mut self) -> Option<usize> {
        usize::try_from(u32::from_be_bytes(self.array()?)).ok()
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.count()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    fn option(&mut self) -> Option<Option<&'a str>> {
        match self.u8()? {
            0 => Some(None),
            1 => self.text().map(Some),
            _ => None,
        }
    }

    fn stable(&mut self) -> Option<RowState> {
        let leader = MemberId::from(self.text()?);
        let protocol = Arc::from(self.text()?);
        let mut members = Members::new();
        for _ in 0..self.count()? {
            let member = self.member()?;
            members.insert(member.id.clone(), Arc::new(member));
        }
        // A group without its leader could never be synced: whoever wrote it was not this code.
        members.contains_key(&leader).then(|| RowState::Stable { leader, protocol, members: Arc::new(members) })
    }

    fn member(&mut self) -> Option<Member> {
        Some(Member {
            id: MemberId::from(self.text()?),
            instance: self.option()?.map(InstanceId::from),
            client_id: self.text()?.to_owned(),
            client_host: self.text()?.to_owned(),
            session_timeout_ms: self.i32()?,
            rebalance_timeout_ms: self.i32()?,
            place: u64::from_be_bytes(self.array()?),
            assignment: Bytes::copy_from_slice(self.bytes()?),
            protocols: self.protocols()?,
        })
    }

    fn protocols(&mut self) -> Option<Vec<(String, Bytes)>> {
        let mut protocols = Vec::new();
        for _ in 0..self.count()? {
            let name = self.text()?.to_owned();
            protocols.push((name, Bytes::copy_from_slice(self.bytes()?)));
        }
        Some(protocols)
    }
}

//! Rows' bodies, to bytes and back. docs/format.md has them field by field.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::bytes::{In, Out};
use crate::engine::ledger::offsets::Committed;
use crate::engine::txn::work::{Owed, OwedPart, Stage};
use crate::engine::txn::{Ongoing, Position, Staged, State, Txn};
use crate::engine::{GroupId, Outcome, PartId, Producer, TransactionalId};

const TXN: u8 = 1;
const STAGED: u8 = 1;
const COMMITTED: u8 = 1;
const OWED: u8 = 1;

fn outcome_byte(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Abort => 0,
        Outcome::Commit => 1,
    }
}

fn outcome(byte: u8) -> Option<Outcome> {
    match byte {
        0 => Some(Outcome::Abort),
        1 => Some(Outcome::Commit),
        _ => None,
    }
}

/// A transactional id; its staged offsets are rows of their own.
pub(super) fn txn_bytes(txn: &Txn) -> Vec<u8> {
    let mut out = Out::new(TXN);
    out.long(txn.producer.id).short(txn.producer.epoch).short(txn.last_epoch).long(txn.previous_producer_id);
    out.int(txn.timeout_ms).long(txn.updated_wall_ms);
    match &txn.state {
        State::Empty => out.byte(0),
        State::Ongoing(ongoing) => {
            out.byte(1).ulong(ongoing.number).long(ongoing.started_wall_ms).count(ongoing.parts.len());
            for part in ongoing.parts.iter() {
                out.long(part.0);
            }
            out.count(ongoing.groups.len());
            for group in ongoing.groups.iter() {
                out.text(group.as_str());
            }
            &mut out
        }
        State::Ended { outcome, started_wall_ms } => out.byte(2).byte(outcome_byte(*outcome)).long(*started_wall_ms),
    };
    out.done()
}

pub(super) fn txn(body: &[u8]) -> Option<Txn> {
    let mut from = In::new(body, TXN)?;
    let producer = Producer { id: from.long()?, epoch: from.short()? };
    let (last_epoch, previous_producer_id) = (from.short()?, from.long()?);
    let (timeout_ms, updated_wall_ms) = (from.int()?, from.long()?);
    let state = match from.byte()? {
        0 => State::Empty,
        1 => State::Ongoing(ongoing(&mut from)?),
        2 => State::Ended { outcome: outcome(from.byte()?)?, started_wall_ms: from.long()? },
        _ => return None,
    };
    Some(Txn { producer, last_epoch, previous_producer_id, timeout_ms, state, updated_wall_ms })
}

fn ongoing(from: &mut In<'_>) -> Option<Ongoing> {
    let (number, started_wall_ms) = (from.ulong()?, from.long()?);
    let mut parts = BTreeSet::new();
    for _ in 0..from.count()? {
        parts.insert(PartId(from.long()?));
    }
    let mut groups = BTreeSet::new();
    for _ in 0..from.count()? {
        groups.insert(GroupId::from(from.text()?));
    }
    Some(Ongoing {
        number,
        parts: Arc::new(parts),
        groups: Arc::new(groups),
        staged: Arc::default(),
        started_wall_ms,
        since_mono_ms: 0,
    })
}

fn put_position(out: &mut Out, position: &Position) {
    out.long(position.offset).int(position.leader_epoch).text(&position.metadata);
}

fn position(from: &mut In<'_>) -> Option<Position> {
    Some(Position { offset: from.long()?, leader_epoch: from.int()?, metadata: from.text()? })
}

pub(super) fn staged_bytes(staged: &Staged) -> Vec<u8> {
    let mut out = Out::new(STAGED);
    out.ulong(staged.order);
    put_position(&mut out, &staged.position);
    out.done()
}

pub(super) fn staged(body: &[u8]) -> Option<Staged> {
    let mut from = In::new(body, STAGED)?;
    Some(Staged { order: from.ulong()?, position: position(&mut from)? })
}

pub(super) fn committed_bytes(committed: &Committed) -> Vec<u8> {
    let mut out = Out::new(COMMITTED);
    out.ulong(committed.order).long(committed.at_wall_ms).long(committed.expires_wall_ms.unwrap_or(-1));
    put_position(&mut out, &committed.position);
    out.done()
}

pub(super) fn committed(body: &[u8]) -> Option<Committed> {
    let mut from = In::new(body, COMMITTED)?;
    let (order, at_wall_ms, expires) = (from.ulong()?, from.long()?, from.long()?);
    let expires_wall_ms = (expires >= 0).then_some(expires);
    Some(Committed { order, at_wall_ms, expires_wall_ms, position: position(&mut from)? })
}

pub(super) fn owed_bytes(owed: &Owed) -> Vec<u8> {
    let mut out = Out::new(OWED);
    out.text(owed.id.as_str()).ulong(owed.number).long(owed.marker.id).short(owed.marker.epoch);
    out.byte(outcome_byte(owed.outcome)).count(owed.parts.len());
    for (part, state) in &owed.parts {
        out.long(part.0).long(state.sealed_end);
    }
    out.done()
}

pub(super) fn owed(body: &[u8]) -> Option<Owed> {
    let mut from = In::new(body, OWED)?;
    let (id, number) = (TransactionalId::from(from.text()?), from.ulong()?);
    let marker = Producer { id: from.long()?, epoch: from.short()? };
    let outcome = outcome(from.byte()?)?;
    let mut parts = BTreeMap::new();
    for _ in 0..from.count()? {
        let part = PartId(from.long()?);
        parts.insert(part, OwedPart { sealed_end: from.long()?, stage: Stage::Due { at_mono_ms: 0, tries: 0 } });
    }
    Some(Owed { id, number, marker, outcome, parts, offsets: Vec::new(), since_mono_ms: 0 })
}

//! Table tests of the ledger: transactions, offsets and topics as they touch each other.

#![expect(clippy::arithmetic_side_effects, reason = "small numbers of tests")]

mod groups;
mod offsets;
mod recovery;
mod tools;
mod transactions;

use std::collections::{BTreeMap, BTreeSet};

use super::offsets::Seen;
use super::recover::Loaded;
use super::transactions::Owner;
use super::*;
use crate::engine::catalog::{BrokerLevels, CreateTopic, Defaults, Replication};
use crate::engine::group::Settings;
use crate::engine::txn::end::Cause;
use crate::engine::txn::init::Init;
use crate::engine::txn::work::Stage;
use crate::engine::txn::{Addition, Claimed, Position};
use crate::engine::{Claim, Now, Offset, Outcome, Producer, TopicId};

const P: PartId = PartId(0);
const Q: PartId = PartId(1);

fn now(mono_ms: i64) -> Now {
    Now { mono_ms, wall_ms: 1_700_000_000_000 + mono_ms }
}

fn settings() -> Settings {
    Settings {
        min_session_timeout_ms: 6_000,
        max_session_timeout_ms: 1_800_000,
        initial_rebalance_delay_ms: 0,
        max_size: 10,
    }
}

fn nobody() -> Claim {
    Claim { generation: -1, member: "".into(), instance: None }
}

fn at(offset: Offset) -> Position {
    Position { offset, leader_epoch: -1, metadata: String::new() }
}

/// A ledger with a topic of two partitions, everything committed.
struct Bench {
    ledger: Ledger,
    ms: i64,
}

impl Bench {
    fn new() -> Self {
        let mut bench = Self { ledger: Ledger::load(Loaded::default(), &settings(), now(0)), ms: 0 };
        bench.topic("t", 2);
        bench
    }

    fn now(&self) -> Now {
        now(self.ms)
    }

    fn topic(&mut self, name: &str, partitions: i32) -> Vec<PartId> {
        let defaults =
            Defaults { partitions: 1, node_id: 1, replication: Replication::Refuse, levels: BrokerLevels::default() };
        let spec = CreateTopic { partitions: Some(partitions), ..CreateTopic::by_defaults(name) };
        let planned = self.ledger.plan_topic(&spec, &defaults).expect("a good topic");
        let mut id = [3; 16];
        id.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
        let made = self.ledger.make_topic(TopicId(id), name, planned);
        self.ledger.commit();
        made.into_iter().map(|(part, _)| part).collect()
    }

    fn delete(&mut self, name: &str) {
        let topic = self.ledger.deletable(name).unwrap();
        self.ledger.delete_topic(&topic);
        self.ledger.commit();
    }

    fn init(&mut self, id: &str) -> Producer {
        let request = Init { timeout_ms: 1_000, expected: None };
        let Owner::Now(producer) = self.ledger.init_producer(&id.into(), request, self.now()).unwrap() else {
            panic!("open")
        };
        self.ledger.commit();
        producer
    }

    fn add(&mut self, id: &str, producer: Producer, parts: &[PartId], groups: &[&str]) -> u64 {
        let id = TransactionalId::from(id);
        let claimed = Claimed { id: &id, producer };
        let parts = Addition::Parts(parts.iter().copied().collect());
        let mut number = self.ledger.add_to_txn(claimed, &parts, now(self.ms)).unwrap().number;
        for group in groups {
            let group = Addition::Group((*group).into());
            number = self.ledger.add_to_txn(claimed, &group, now(self.ms)).unwrap().number;
        }
        self.ledger.commit();
        number
    }

    fn stage(&mut self, id: &str, producer: Producer, group: &str, offset: (PartId, Offset)) {
        let id = TransactionalId::from(id);
        let (group, claim) = (GroupId::from(group), nobody());
        let offsets = vec![(offset.0, at(offset.1))];
        let claimed = Claimed { id: &id, producer };
        self.ledger.stage_for_group(claimed, (&group, &claim), offsets, now(self.ms)).unwrap();
        self.ledger.commit();
    }

    fn plain(&mut self, group: &str, part: PartId, offset: Offset) {
        let offsets = [(part, at(offset))];
        self.ledger.commit_offsets(&group.into(), &nobody(), (&offsets, None), now(self.ms)).unwrap();
        self.ledger.commit();
    }

    fn decide(&mut self, id: &str, number: u64, outcome: Outcome) -> Option<u64> {
        self.decide_with(id, number, (outcome, Cause::Client), &BTreeMap::from([(P, Some(10)), (Q, Some(10))]))
    }

    fn decide_with(
        &mut self,
        id: &str,
        number: u64,
        how: (Outcome, Cause),
        sealed: &BTreeMap<PartId, Option<Offset>>,
    ) -> Option<u64> {
        let seq = self.ledger.decide((&id.into(), number), how, sealed, now(self.ms)).unwrap();
        self.ledger.commit();
        seq
    }

    /// Every marker of a debt is on disk.
    fn pay(&mut self, seq: u64) {
        let parts: Vec<PartId> = self.ledger.owed.get(&seq).unwrap().parts.keys().copied().collect();
        for part in parts {
            self.ledger.set_stage(seq, part, Stage::Synced);
        }
        assert!(self.ledger.release_if_over(seq, false, now(self.ms)));
        self.ledger.forget_owed(seq);
        self.ledger.commit();
    }

    fn seen(&self, group: &str, part: PartId) -> Seen {
        self.ledger.seen_offset(&(group.into(), part), false)
    }

    fn is_unstable(&self, group: &str, part: PartId) -> bool {
        self.ledger.seen_offset(&(group.into(), part), true) == Seen::Unstable
    }
}

/// Everything that can be read of a ledger, to see whether a step left a trace.
fn picture(ledger: &Ledger) -> String {
    let txns: Vec<_> = ledger.txns.iter().collect();
    let debts: Vec<_> = ledger.debts().collect();
    let offsets: BTreeSet<_> = ledger.offset_keys(|_| true).into_iter().collect();
    let seen: Vec<_> =
        offsets.iter().map(|key| (key, ledger.seen_offset(key, true), ledger.seen_offset(key, false))).collect();
    let parts: Vec<_> = ledger.all_parts().collect();
    let topics = ledger.catalog();
    let groups: Vec<_> = ledger.groups.iter().map(|(id, group)| (id, group.describe())).collect();
    let marks = ledger.marks();
    let due = (ledger.deadline_mono_ms(), ledger.due(i64::MAX), ledger.pending_offsets(), ledger.rows());
    format!("{txns:?} {debts:?} {seen:?} {parts:?} {topics:?} {groups:?} {marks:?} {due:?}")
}

//! Rules of classic groups, one table line each, and a walk through random histories.

#![expect(clippy::arithmetic_side_effects, reason = "small numbers of tests")]

mod admin;
mod commit;
mod join;
mod member;
mod random;
mod rebalance;
mod replace;
mod sync;
mod table;

use std::collections::BTreeMap;

use bytes::Bytes;

use super::*;
use crate::engine::Claim;

const SESSION_MS: i32 = 10_000;
const REBALANCE_MS: i32 = 60_000;

fn settings() -> Settings {
    Settings {
        min_session_timeout_ms: 6000,
        max_session_timeout_ms: 1_800_000,
        initial_rebalance_delay_ms: 3000,
        max_size: 100,
    }
}

fn protocols(names: &[&str]) -> Vec<(String, Bytes)> {
    names.iter().map(|name| ((*name).to_owned(), Bytes::from(format!("meta-{name}")))).collect()
}

/// A JoinGroup below version 4, so that one request makes a member called `name`.
fn new(name: &str) -> Join {
    Join {
        member: MemberId::from(""),
        instance: None,
        client_id: "client".to_owned(),
        client_host: "/10.0.0.1".to_owned(),
        session_timeout_ms: SESSION_MS,
        rebalance_timeout_ms: REBALANCE_MS,
        protocol_type: "consumer".to_owned(),
        protocols: protocols(&["range"]),
        version: JoinVersion::V0,
        fresh_member: MemberId::from(name),
    }
}

/// A JoinGroup of version 9, as modern clients begin.
fn modern(fresh: &str) -> Join {
    Join { version: JoinVersion::V9, ..new(fresh) }
}

/// A JoinGroup of someone who has the id `name`.
fn again(name: &str) -> Join {
    Join { member: MemberId::from(name), ..modern("never-used") }
}

fn instance(name: &str) -> Option<InstanceId> {
    (!name.is_empty()).then(|| InstanceId::from(name))
}

/// A new process of the static member `i`, to be called `name`.
fn fixed(name: &str, i: &str) -> Join {
    Join { instance: instance(i), ..modern(name) }
}

fn claim(generation: i32, member: &str, i: &str) -> Claim {
    Claim { generation, member: MemberId::from(member), instance: instance(i) }
}

fn sync_of(claim: Claim, assignments: &[(&str, &str)]) -> Sync {
    let assignments = assignments.iter().map(|(id, bytes)| (MemberId::from(*id), Bytes::from((*bytes).to_owned())));
    Sync {
        claim,
        protocol_type: Some("consumer".to_owned()),
        protocol: Some("range".to_owned()),
        assignments: assignments.collect(),
    }
}

/// A group with its clock, and everything it has answered.
#[derive(Clone)]
struct Bench {
    group: Group,
    settings: Settings,
    now: Now,
    replies: u64,
    answers: BTreeMap<ReplyTo, GroupAnswer>,
    /// Whether the last step changed the durable row.
    stored: bool,
}

impl Bench {
    fn empty() -> Self {
        let now = Now { mono_ms: 1000, wall_ms: 1_700_000_000_000 };
        let (group, settings) = (Group::new(now), settings());
        Self { group, settings, now, replies: 0, answers: BTreeMap::new(), stored: false }
    }

    fn reply(&mut self) -> ReplyTo {
        self.replies += 1;
        ReplyTo(self.replies)
    }

    fn take(&mut self, step: Step) {
        let changed = step.next.row != self.group.row;
        assert!(step.stored || !changed, "a changed row that nobody stores");
        assert!(step.next.generation >= self.group.generation, "the generation fell");
        self.stored = step.stored;
        self.group = step.next;
        for (reply, answer) in step.answers {
            assert!(self.answers.insert(reply, answer).is_none(), "{reply:?} answered twice");
        }
        check_invariants(&self.group);
    }

    fn join(&mut self, join: &Join) -> ReplyTo {
        let reply = self.reply();
        self.take(self.group.join(join, reply, &self.settings, self.now));
        reply
    }

    fn sync(&mut self, sync: &Sync) -> ReplyTo {
        let reply = self.reply();
        self.take(self.group.sync(sync, reply, self.now));
        reply
    }

    /// SyncGroup of a member of the current generation.
    fn sync_as(&mut self, member: &str, assignments: &[(&str, &str)]) -> ReplyTo {
        let claim = claim(self.group.generation, member, "");
        self.sync(&sync_of(claim, assignments))
    }

    fn heartbeat(&mut self, claim: &Claim) -> Result<(), Refusal> {
        let reply = self.reply();
        self.take(self.group.heartbeat(claim, reply, self.now));
        match self.answers.get(&reply) {
            Some(GroupAnswer::Heartbeat(verdict)) => *verdict,
            other => panic!("{other:?}"),
        }
    }

    fn leave(&mut self, leaving: &[(&str, &str)]) -> Vec<Option<Refusal>> {
        let entry =
            |(member, i): &(&str, &str)| LeavingMember { member: MemberId::from(*member), instance: instance(i) };
        let leaving: Vec<LeavingMember> = leaving.iter().map(entry).collect();
        let reply = self.reply();
        self.take(self.group.leave(&leaving, reply, self.now));
        match self.answers.get(&reply) {
            Some(GroupAnswer::Left(left)) => {
                assert!(left.iter().map(|l| &l.leaving).eq(&leaving));
                left.iter().map(|l| l.refusal).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    fn comes(&mut self, join: &Join) {
        self.join(join);
    }

    fn goes(&mut self, member: &str) {
        assert_eq!(self.leave(&[(member, "")]), [None]);
    }

    fn syncs(&mut self, member: &str) {
        self.sync_as(member, &[]);
    }

    /// Lets time pass, with every timer at its moment.
    fn pass(&mut self, ms: i64) {
        let end = self.now.mono_ms + ms;
        while let Some(due) = self.group.deadline().filter(|due| *due <= end) {
            self.set_clock(due.max(self.now.mono_ms));
            let step = self.group.expire(self.now).expect("a deadline that is due");
            self.take(step);
        }
        self.set_clock(end);
        assert_eq!(self.group.expire(self.now), None);
    }

    fn set_clock(&mut self, mono_ms: i64) {
        self.now.wall_ms += mono_ms - self.now.mono_ms;
        self.now.mono_ms = mono_ms;
    }

    fn joined(&self, reply: ReplyTo) -> Option<&JoinAnswer> {
        match self.answers.get(&reply)? {
            GroupAnswer::Joined(answer) => Some(answer),
            other @ (GroupAnswer::Synced(_) | GroupAnswer::Heartbeat(_) | GroupAnswer::Left(_)) => panic!("{other:?}"),
        }
    }

    /// The answer under this number, if it is one to a JoinGroup.
    fn told_join(&self, reply: ReplyTo) -> Option<&JoinAnswer> {
        if let Some(GroupAnswer::Joined(answer)) = self.answers.get(&reply) { Some(answer) } else { None }
    }

    fn synced(&self, reply: ReplyTo) -> Option<&SyncAnswer> {
        match self.answers.get(&reply)? {
            GroupAnswer::Synced(answer) => Some(answer),
            other @ (GroupAnswer::Joined(_) | GroupAnswer::Heartbeat(_) | GroupAnswer::Left(_)) => panic!("{other:?}"),
        }
    }

    /// How a request ended: "parked", "ok" or the refusal's name.
    fn outcome(&self, reply: ReplyTo) -> String {
        let refusal = match self.answers.get(&reply) {
            None => return "parked".to_owned(),
            Some(GroupAnswer::Joined(answer)) => answer.refusal,
            Some(GroupAnswer::Synced(answer)) => answer.refusal,
            Some(GroupAnswer::Heartbeat(verdict)) => verdict.err(),
            Some(GroupAnswer::Left(left)) => left.iter().find_map(|l| l.refusal),
        };
        refusal.map_or_else(|| "ok".to_owned(), |refusal| refusal.to_string())
    }

    /// Members (id, instance) that joined together; the first leads. Generation 1, nobody has synced.
    fn completing(members: &[(&str, &str)]) -> Self {
        let mut bench = Self::empty();
        for (name, i) in members {
            bench.join(&Join { instance: instance(i), ..new(name) });
        }
        bench.pass(6000);
        assert_eq!(bench.group.state_name(), "CompletingRebalance");
        bench
    }

    /// The same, with everyone synced: each is assigned "for-" and its name.
    fn stable(members: &[(&str, &str)]) -> Self {
        let mut bench = Self::completing(members);
        let shares: Vec<String> = members.iter().map(|(name, _)| format!("for-{name}")).collect();
        let assignments: Vec<(&str, &str)> =
            members.iter().zip(&shares).map(|((name, _), share)| (*name, share.as_str())).collect();
        for (name, i) in members {
            let reply = bench.sync(&sync_of(claim(1, name, i), &assignments));
            assert_eq!(bench.outcome(reply), "ok");
        }
        assert_eq!(bench.group.state_name(), "Stable");
        bench
    }

    /// The same, after which a newcomer "z" has parked its JoinGroup; nobody else has re-joined.
    fn preparing(members: &[(&str, &str)]) -> Self {
        let mut bench = Self::stable(members);
        let reply = bench.join(&new("z"));
        assert_eq!(bench.outcome(reply), "parked");
        assert_eq!(bench.group.state_name(), "PreparingRebalance");
        bench
    }

    /// A group that all of its members have left: generation 2.
    fn left() -> Self {
        let mut bench = Self::stable(&[("a", "")]);
        assert_eq!(bench.leave(&[("a", "")]), [None]);
        assert_eq!((bench.group.state_name(), bench.group.generation), ("Empty", 2));
        bench
    }

    /// In the state of that name, with the members a (leader) and b; in "Empty" they are gone.
    fn in_state(state: &str) -> Self {
        let members = [("a", ""), ("b", "ib")];
        match state {
            "Empty" => Self::left(),
            "PreparingRebalance" => Self::preparing(&members),
            "CompletingRebalance" => Self::completing(&members),
            "Stable" => Self::stable(&members),
            other => panic!("{other}"),
        }
    }
}

/// What must hold of any group (V-1202).
fn check_invariants(group: &Group) {
    let ids = group.roster.ids();
    assert!(group.sessions.keys().eq(&ids), "sessions and members differ");
    assert!(group.pending.keys().all(|id| !ids.contains(id)), "a pending member");
    let statics = group.roster.iter().filter_map(|m| m.instance.clone().map(|i| (i, m.id.clone())));
    for (i, id) in statics {
        assert_eq!(group.roster.holder(&i), Some(&id));
    }
    let within = |set: &BTreeSet<MemberId>| set.is_subset(&ids);
    match &group.state {
        State::Empty { .. } => assert!(ids.is_empty()),
        State::Preparing(p) => {
            assert!(!ids.is_empty());
            assert!(p.parked.keys().all(|id| ids.contains(id)) && within(&p.newcomers));
        }
        State::Completing(c) => {
            assert!(ids.contains(&c.elected.leader) && within(&c.barrier.missing));
            assert!(c.barrier.missing.contains(&c.elected.leader), "a leader that synced");
            assert!(c.parked.keys().all(|id| ids.contains(id) && !c.barrier.missing.contains(id)));
            assert!(group.roster.iter().all(|m| m.protocols.iter().any(|(name, _)| **name == *c.elected.protocol)));
        }
        State::Stable(s) => {
            assert!(ids.contains(&s.elected.leader) && within(&s.barrier.missing));
            let RowState::Stable { leader, members, .. } = &group.row.state else { panic!("Stable, and not stored") };
            assert_eq!((leader, &group.row.generation), (&s.elected.leader, &group.generation));
            assert_eq!(*members, group.roster.shared());
        }
    }
    assert_eq!(GroupRow::decode(&group.row.encode()).as_ref(), Some(&*group.row));
}

use super::*;

/// SplitMix64: one seed, one history.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let at = self.roll(from.len() as u64);
        &from[usize::try_from(at).unwrap()]
    }
}

/// Some clients, each remembering what it was last told, and a zombie's chance of saying something older.
struct Clients {
    dice: Dice,
    bench: Bench,
    asked: u64,
    /// Ids ever used, with their instance.
    ids: Vec<(String, &'static str)>,
}

impl Clients {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let mut bench = Bench::empty();
        bench.settings.initial_rebalance_delay_ms = *dice.pick(&[0, 0, 3000]);
        bench.settings.max_size = *dice.pick(&[2, 3, 100]);
        Self { dice, bench, asked: 0, ids: vec![(String::new(), "")] }
    }

    fn join(&mut self) {
        let i = *self.dice.pick(&["", "", "", "i1", "i2"]);
        let fresh = format!("m{}", self.bench.replies);
        let known = self.dice.roll(2) == 0;
        let (member, i) = if known { self.dice.pick(&self.ids).clone() } else { (String::new(), i) };
        let offered = *self.dice.pick(&["range", "range,sticky", "sticky,range", "odd"]);
        let offered: Vec<&str> = offered.split(',').collect();
        let join = Join {
            member: MemberId::from(member),
            instance: instance(i),
            rebalance_timeout_ms: *self.dice.pick(&[-1, 0, 5000, REBALANCE_MS, i32::MAX]),
            protocols: protocols(&offered),
            version: *self.dice.pick(&[JoinVersion::V0, JoinVersion::V4, JoinVersion::V9]),
            ..new(&fresh)
        };
        self.ids.push((fresh, i));
        self.bench.join(&join);
        self.asked += 1;
    }

    fn claim(&mut self) -> Claim {
        let (member, i) = self.dice.pick(&self.ids).clone();
        let generation = self.bench.group.generation - i32::from(self.dice.roll(8) == 0);
        claim(generation, &member, if self.dice.roll(4) == 0 { "i1" } else { i })
    }

    /// SyncGroup of the leader half of the time, else of anyone.
    fn sync(&mut self) {
        let leader = self.bench.group.elected().map(|elected| elected.leader.clone());
        let mut claim = self.claim();
        if let Some(leader) = leader.filter(|_| self.dice.roll(2) == 0) {
            claim = Claim { generation: self.bench.group.generation, member: leader, instance: None };
        }
        let mut sync = sync_of(claim, &[]);
        sync.protocol = None;
        sync.assignments = self.ids.iter().map(|(id, _)| (MemberId::from(id.as_str()), Bytes::from("x"))).collect();
        self.bench.sync(&sync);
        self.asked += 1;
    }

    fn turn(&mut self) {
        match self.dice.roll(20) {
            0..=6 => self.join(),
            7..=11 => self.sync(),
            12..=14 => {
                let claim = self.claim();
                _ = self.bench.heartbeat(&claim);
                self.asked += 1;
            }
            15 => {
                let (member, i) = self.dice.pick(&self.ids).clone();
                self.bench.leave(&[(&member, i)]);
                self.asked += 1;
            }
            16 => {
                let claim = self.claim();
                if self.bench.group.may_commit(&claim).is_ok() {
                    self.bench.take(self.bench.group.committed(&claim, self.bench.now));
                }
            }
            17 => self.bench.take(self.bench.group.sync_not_stored(Refusal::NotCoordinator, self.bench.now)),
            _ => {
                let ms = *self.dice.pick(&[0, 1, 1000, 5000, 11_000, 61_000]);
                self.bench.pass(ms);
            }
        }
    }

    /// Nobody asks any more: every timer runs out.
    fn run_out(&mut self) {
        for _ in 0..20_000 {
            let Some(due) = self.bench.group.deadline() else { return };
            self.bench.set_clock(due.max(self.bench.now.mono_ms));
            let step = self.bench.group.expire(self.bench.now).expect("due");
            self.bench.take(step);
        }
        panic!("timers that never run out");
    }
}

#[test]
fn random_histories() {
    let mut generations = 0;
    for seed in 0..3000 {
        println!("seed {seed}");
        let mut clients = Clients::new(seed);
        for _ in 0..60 {
            clients.turn();
        }
        let unanswered = clients.asked - clients.bench.answers.len() as u64;
        let parked = match &clients.bench.group.state {
            State::Preparing(preparing) => preparing.parked.len(),
            State::Completing(completing) => completing.parked.len(),
            State::Empty { .. } | State::Stable(_) => 0,
        };
        assert_eq!(unanswered, parked as u64, "seed {seed}: who is not answered is parked");
        let half_way = clients.bench.clone();
        clients.run_out();
        assert_eq!(clients.asked, clients.bench.answers.len() as u64, "seed {seed}: all are answered");
        assert_eq!(clients.bench.group.state_name(), "Empty", "seed {seed}");
        generations += clients.bench.group.generation;
        // The same from any restart: a stored group ends by itself, too.
        let row = (**half_way.group.row()).clone();
        clients.bench.group = Group::from_row(row, &half_way.settings, clients.bench.now);
        clients.run_out();
        assert!(clients.bench.group.may_vanish(), "seed {seed}");
    }
    assert!(generations > 6000, "histories in which something happens: {generations}");
}

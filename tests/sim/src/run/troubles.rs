//! What goes wrong: faults of the disk, ends of the process, and starts after them.

use super::Run;
use crate::runtime::world::invariants;
use crate::store::faults::{Fault, Operation, Rule};
use crate::store::mem_disk::{Cut, MemDisk};

impl Run {
    pub(super) fn trouble(&mut self) {
        if self.world.broken.is_some() {
            return;
        }
        let swarm = self.swarm.clone();
        if self.dice.once_in(swarm.no_space) {
            let fault = self.dice.pick(&[Fault::NoSpace, Fault::NoSpace, Fault::Short(30)]);
            let operation = self.dice.pick(&[Operation::Write, Operation::Write, Operation::Create]);
            let times = Some(1 + u32::try_from(self.dice.roll(4)).unwrap());
            self.arm(Rule { times, ..Rule::once(operation, "", fault) });
        }
        if self.dice.once_in(swarm.write_error) {
            self.fatal = true;
            self.arm(Rule::once(Operation::Write, "", Fault::Io));
        }
        if self.dice.once_in(swarm.sync_error) {
            self.fatal = true;
            self.arm(Rule::once(Operation::Sync, "", Fault::Io));
        }
        if self.dice.once_in(swarm.stop) && self.world.broken.is_none() {
            self.stop();
        } else if self.dice.once_in(swarm.kill) || self.dice.once_in(swarm.cut) {
            if swarm.inside && self.dice.once_in(2) {
                self.world.disk.power().off_after(1 + self.dice.roll(12));
            } else {
                self.end();
            }
        }
    }

    /// A fault that strikes anything, or only one kind of file.
    fn arm(&mut self, rule: Rule) {
        let path = self.dice.pick(&["", "meta.db", "out-", "out-0/", ".log", "index", "snapshot"]);
        let after = u32::try_from(self.dice.roll(6)).unwrap();
        self.world.disk.faults().add(Rule { path: path.to_owned(), after, ..rule });
    }

    /// Whether the world is broken, and may be.
    pub(super) fn mend(&mut self) {
        let Some(why) = self.world.broken.clone() else { return };
        let power = self.world.disk.power().is_off();
        assert!(power || self.fatal, "P8: the process ends: {why}");
        self.end();
    }

    /// The process ends, by a kill or with the power, and starts again: as often as it takes.
    fn end(&mut self) {
        let cuts = self.swarm.cut > 0 && (self.swarm.kill == 0 || self.dice.once_in(2));
        loop {
            let cut = self.cut();
            let disk = if cuts { self.world.disk.crash(cut) } else { self.world.disk.killed() };
            if self.swarm.while_starting && self.dice.once_in(3) {
                disk.power().off_after(1 + self.dice.roll(60));
            }
            self.begin_again(disk);
            if self.world.broken.is_none() {
                break;
            }
            let why = self.world.broken.clone();
            assert!(self.world.disk.power().is_off(), "P8: a start fails: {why:?}");
        }
    }

    fn cut(&mut self) -> Cut {
        let seed = self.dice.draw();
        match self.dice.roll(6) {
            0 => Cut::LoseAll,
            1 => Cut::LoseNothing,
            _ if self.swarm.flips => Cut::SeedAndFlips(seed),
            _ => Cut::Seed(seed),
        }
    }

    fn stop(&mut self) {
        self.world.disk.faults().lift();
        self.world.stop();
        self.collect();
        if self.world.broken.is_some() {
            return self.mend();
        }
        // Nothing may be lost after a stop in order, whatever happens then.
        let disk = if self.dice.once_in(2) { self.world.disk.crash(Cut::LoseAll) } else { self.world.disk.killed() };
        self.begin_again(disk);
        let why = self.world.broken.clone();
        assert_eq!(why, None, "P8: a start after a stop in order fails");
    }

    fn begin_again(&mut self, disk: MemDisk) {
        self.world.restart(disk, usize::MAX);
        self.fatal = false;
        self.edge.broker_gone(&mut self.dice);
        self.world.answers.clear();
        for process in &mut self.processes {
            process.disconnected(self.now_ms);
            // Some go with the broker, and what they were in the middle of is left to its timeout.
            process.dead |= !process.closing && self.dice.once_in(4);
        }
        self.turns += 1;
        if self.world.broken.is_none() {
            self.unseen.all(&self.world);
            invariants::nothing_hangs(&self.world);
            self.read();
        }
    }
}

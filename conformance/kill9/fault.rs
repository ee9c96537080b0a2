//! What is done to the broker in the middle of a round.

use std::fmt;
use std::fs::{File, remove_file};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use crate::clients::TRANSACTION_TIMEOUT_MS;
use crate::dice::Dice;
use crate::process::{Broker, Failed};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Kill,
    KillTwice,
    /// Killed, and again in the middle of the start that follows.
    KillInStart,
    /// Stopped for longer than any transaction may stay open, then let go on.
    Freeze,
    /// Told to stop.
    Terminate,
    /// No room for a while.
    Fill,
    /// No room, and killed meanwhile.
    FillAndKill,
}

/// Ten rounds have them all.
const ORDER: [Fault; 10] = [
    Fault::Kill,
    Fault::KillInStart,
    Fault::Freeze,
    Fault::Fill,
    Fault::KillTwice,
    Fault::Terminate,
    Fault::KillInStart,
    Fault::Kill,
    Fault::FillAndKill,
    Fault::KillTwice,
];

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Kill => "kill",
            Self::KillTwice => "kill, kill",
            Self::KillInStart => "kill, kill in start",
            Self::Freeze => "freeze",
            Self::Terminate => "terminate",
            Self::Fill => "no room",
            Self::FillAndKill => "no room, kill",
        };
        f.pad(name)
    }
}

impl Fault {
    /// The fault of a round. Where there is no volume that may be filled, a kill takes its place.
    pub(crate) fn of(round: u32, can_fill: bool) -> Self {
        let turn = usize::try_from(round.wrapping_sub(1)).unwrap() % ORDER.len();
        match ORDER[turn] {
            Self::Fill | Self::FillAndKill if !can_fill => Self::Kill,
            fault @ (Self::Kill
            | Self::KillTwice
            | Self::KillInStart
            | Self::Freeze
            | Self::Terminate
            | Self::Fill
            | Self::FillAndKill) => fault,
        }
    }

    /// Whether it makes the broker refuse single batches.
    pub(crate) fn refuses(self) -> bool {
        match self {
            Self::Fill | Self::FillAndKill => true,
            Self::Kill | Self::KillTwice | Self::KillInStart | Self::Freeze | Self::Terminate => false,
        }
    }

    /// Does it. Afterwards the broker serves again; while there is no room, `probe` looks what that means to a client.
    pub(crate) fn strike(
        self,
        broker: &mut Broker,
        dice: &mut Dice,
        (volume, probe): (&Path, &mut dyn FnMut()),
    ) -> Result<(), Failed> {
        match self {
            Self::Kill => {
                broker.kill();
                start(broker)
            }
            Self::KillTwice => {
                broker.kill();
                start(broker)?;
                std::thread::sleep(dice.ms(1, 400));
                broker.kill();
                start(broker)
            }
            Self::KillInStart => {
                broker.kill();
                for _ in 0..1 + dice.roll(3) {
                    broker.spawn();
                    std::thread::sleep(dice.ms(0, 60));
                    broker.kill();
                }
                start(broker)
            }
            Self::Freeze => {
                broker
                    .freeze(Duration::from_millis(u64::try_from(TRANSACTION_TIMEOUT_MS).unwrap()) + dice.ms(100, 800));
                broker.runs()
            }
            Self::Terminate => {
                broker.terminate()?;
                start(broker)
            }
            Self::Fill => {
                let ballast = Ballast::fill(volume);
                probe();
                std::thread::sleep(dice.ms(100, 700));
                drop(ballast);
                broker.serves()
            }
            Self::FillAndKill => {
                let ballast = Ballast::fill(volume);
                probe();
                broker.kill();
                broker.spawn();
                std::thread::sleep(dice.ms(50, 500));
                drop(ballast);
                // Without room a start may be refused; it may not be when there is room.
                if broker.runs().is_err() {
                    broker.spawn();
                }
                broker.serves()
            }
        }
    }
}

fn start(broker: &mut Broker) -> Result<(), Failed> {
    broker.spawn();
    broker.serves()
}

/// A file that takes all the room there is, until it is dropped.
struct Ballast(PathBuf);

impl Ballast {
    fn fill(volume: &Path) -> Self {
        let ballast = Self(volume.join("ballast"));
        let file = File::create(&ballast.0).unwrap();
        let mut end = 0;
        // What is written meanwhile takes room too: as long as there is some, in ever smaller pieces.
        for shift in [30, 26, 22, 18, 14, 12] {
            let piece = 1 << shift;
            loop {
                match fallocate(&file, FallocateFlags::empty(), end, piece) {
                    Ok(()) => end += piece,
                    Err(Errno::NOSPC) => break,
                    Err(error) => panic!("{}: {error}", ballast.0.display()),
                }
            }
            end = file.metadata().unwrap().len();
        }
        ballast
    }
}

impl Drop for Ballast {
    #[expect(clippy::disallowed_methods, reason = "the room is given back by the file's end")]
    fn drop(&mut self) {
        remove_file(&self.0).unwrap();
    }
}

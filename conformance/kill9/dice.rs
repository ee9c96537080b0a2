//! Numbers from a seed, as the loop of kills asks for them.

use std::time::Duration;

/// The simulator's dice, one for each of those who play.
#[derive(Debug, Clone)]
pub(crate) struct Dice(oncelog_sim::dice::Dice);

impl Dice {
    /// The dice of one of those who play: the same for the same run and the same number.
    pub(crate) fn new(seed: u64, player: u64) -> Self {
        let mut dice = oncelog_sim::dice::Dice::new(seed ^ player.wrapping_mul(0xD605_1F16_5B4A_9C6B));
        dice.draw();
        Self(dice)
    }

    /// From 0 to one less than this.
    pub(crate) fn roll(&mut self, sides: u32) -> u32 {
        u32::try_from(self.0.roll(u64::from(sides))).unwrap()
    }

    /// Whether something happens that does so many times of a thousand.
    pub(crate) fn permille(&mut self, chance: u32) -> bool {
        self.roll(1_000) < chance
    }

    pub(crate) fn partition(&mut self, partitions: i32) -> i32 {
        i32::try_from(self.roll(u32::try_from(partitions).unwrap())).unwrap()
    }

    pub(crate) fn ms(&mut self, from: u32, to: u32) -> Duration {
        Duration::from_millis(u64::from(from + self.roll(to - from)))
    }

    /// Mostly short, now and then as long as makes segments roll.
    pub(crate) fn padding(&mut self) -> String {
        let most = if self.permille(100) { 3_000 } else { 120 };
        "x".repeat(usize::try_from(self.roll(most)).unwrap())
    }
}

//! Numbers from a seed.

use std::time::Duration;

/// SplitMix64.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    /// The dice of one of those who play: the same for the same run and the same number.
    pub(crate) fn new(seed: u64, player: u64) -> Self {
        let mut dice = Self(seed ^ player.wrapping_mul(0xD605_1F16_5B4A_9C6B));
        dice.next();
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to one less than this.
    pub(crate) fn roll(&mut self, sides: u32) -> u32 {
        u32::try_from(self.next() % u64::from(sides)).unwrap()
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

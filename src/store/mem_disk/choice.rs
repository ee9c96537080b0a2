//! What a power cut takes of a simulated disk.

use super::Cut;

/// Chooses what a cut takes.
pub(super) struct Choice {
    cut: Cut,
    state: u64,
}

impl Choice {
    pub(super) fn new(cut: Cut) -> Self {
        let state = match cut {
            Cut::Seed(seed) | Cut::SeedAndFlips(seed) => seed,
            Cut::LoseAll | Cut::LoseNothing => 0,
        };
        Self { cut, state }
    }

    pub(super) fn loses(&mut self) -> bool {
        match self.cut {
            Cut::LoseAll => true,
            Cut::LoseNothing => false,
            Cut::Seed(_) | Cut::SeedAndFlips(_) => self.draw().is_multiple_of(2),
        }
    }

    /// Which bit of a sector that was kept is another one now, if any.
    pub(super) fn flips(&mut self) -> Option<u64> {
        let cut = self.cut;
        match cut {
            Cut::SeedAndFlips(_) if self.draw().is_multiple_of(16) => Some(self.draw() % 4096),
            Cut::SeedAndFlips(_) | Cut::Seed(_) | Cut::LoseAll | Cut::LoseNothing => None,
        }
    }

    /// A size of a file that had one durably and got another.
    pub(super) fn between(&mut self, durable: usize, live: usize) -> usize {
        match self.cut {
            Cut::LoseAll => durable,
            Cut::LoseNothing => live,
            Cut::Seed(_) | Cut::SeedAndFlips(_) => {
                let (low, high) = (durable.min(live), durable.max(live));
                let span = u64::try_from(high - low).unwrap_or(0).saturating_add(1);
                match self.draw() % 3 {
                    0 => durable,
                    1 => live,
                    _ => low + usize::try_from(self.draw() % span).unwrap_or(0),
                }
            }
        }
    }

    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

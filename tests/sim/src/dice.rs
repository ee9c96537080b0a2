//! Numbers from a seed.

/// A stream of numbers that one seed decides.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// The stream of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.draw() % sides.max(1)
    }

    /// As `roll`, as an index.
    pub fn index(&mut self, sides: usize) -> usize {
        usize::try_from(self.roll(u64::try_from(sides).unwrap())).unwrap()
    }

    /// As `roll`, as milliseconds.
    pub fn ms(&mut self, sides: i64) -> i64 {
        i64::try_from(self.roll(u64::try_from(sides).unwrap())).unwrap()
    }

    /// True once in `sides` times; never for 0.
    pub fn once_in(&mut self, sides: u64) -> bool {
        sides > 0 && self.roll(sides) == 0
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }
}

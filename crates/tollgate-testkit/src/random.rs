//! Small seeded random number generator, so that one number reproduces a failing history.

/// `SplitMix64` generator.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Creates a generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a random number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number in `low..=high`.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        match (high - low).checked_add(1) {
            Some(span) => low + self.draw() % span,
            None => self.draw(),
        }
    }

    /// Returns a number in `1..=high` with a uniformly distributed number of bits.
    pub fn magnitude(&mut self, high: u64) -> u64 {
        let bits = self.within(0, u64::from(high.ilog2()));
        self.within(1 << bits, (1 << bits) * 2 - 1).min(high)
    }

    /// Returns true with probability 1/`n`.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.draw().is_multiple_of(n)
    }

    /// Returns one of the choices; `None` if there are none.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        let index = self.draw() % u64::try_from(choices.len()).ok()?.max(1);
        choices.get(usize::try_from(index).ok()?)
    }
}

//! Key texts, and the ways to draw a key for the next decision.

/// The two digits of every number below 100. Formatting through `write!` would cost as much as the
/// decision it is subtracted from.
const PAIRS: &str = "\
    0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849\
    5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

/// What keys look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `user:00001234`, 13 bytes.
    User,
    /// The form of a UUID, 36 bytes.
    Uuid,
}

impl Shape {
    /// Both.
    pub const ALL: [Self; 2] = [Self::User, Self::Uuid];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Uuid => "uuid",
        }
    }

    /// How long a key is.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            Self::User => 13,
            Self::Uuid => 36,
        }
    }

    const fn prefix(self) -> &'static str {
        match self {
            Self::User => "user:",
            Self::Uuid => "018f2b3c-7d4e-4a1b-9c2d-0000",
        }
    }
}

/// A key's text in a buffer that is written over and over.
#[derive(Debug)]
pub struct KeyText {
    text: String,
    prefix: usize,
}

impl KeyText {
    /// A buffer for keys of this shape.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        Self { text: shape.prefix().to_owned(), prefix: shape.prefix().len() }
    }

    /// The key of this number, in eight digits.
    #[inline]
    pub fn write(&mut self, number: u32) -> &String {
        self.text.truncate(self.prefix);
        for pair in digits(number) {
            self.text.push_str(pair);
        }
        &self.text
    }
}

/// The last eight digits of a number, in pairs.
#[inline]
pub(crate) fn digits(number: u32) -> [&'static str; 4] {
    [1_000_000, 10_000, 100, 1].map(|scale| {
        let at = 2 * (number / scale % 100) as usize;
        PAIRS.get(at..at + 2).unwrap_or_default()
    })
}

/// So many keys, each in an allocation of its own.
#[must_use]
pub fn array(count: u32) -> Vec<String> {
    let mut text = KeyText::new(Shape::User);
    (0..count).map(|number| text.write(number).clone()).collect()
}

/// How the key of the next decision comes about.
#[derive(Debug, Clone, Copy)]
pub enum Draw<'k> {
    /// Always the same key.
    Hot,
    /// One of the first `below` keys at random, its text written just before the decision.
    Written {
        /// How many keys there are.
        below: u32,
        /// What they look like.
        shape: Shape,
    },
    /// One of an array at random: its text is seldom in cache.
    Array(&'k [String]),
    /// One after the other, for keys never seen.
    InTurn {
        /// The first one's number.
        from: u32,
        /// What they look like.
        shape: Shape,
    },
}

/// Numbers that look random and cost a nanosecond.
#[derive(Debug)]
pub struct Picks(u64);

impl Picks {
    /// The same seed gives the same numbers.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number, below `bound`.
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        // Knuth's MMIX generator, whose high half is the random one.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let high = ((self.0 >> 32) * u64::from(bound)) >> 32;
        u32::try_from(high).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_as_long_as_they_say_and_end_in_their_number() {
        for shape in Shape::ALL {
            let mut text = KeyText::new(shape);
            for number in [0, 1, 1234, 99_999_999] {
                let key = text.write(number);
                assert_eq!(key.len(), shape.bytes() as usize);
                assert!(key.ends_with(&format!("{number:08}")), "{key}");
            }
        }
    }

    #[test]
    fn picks_stay_below_their_bound_and_reach_all_of_it() {
        let mut picks = Picks::new(1);
        let mut seen = [false; 10];
        for _ in 0..1000 {
            seen[picks.below(10) as usize] = true;
        }
        assert_eq!(seen, [true; 10]);
    }
}

//! Key texts, and how the key of each decision is chosen.

/// The two digits of every number below 100. Formatting with `write!` would cost as much as the
/// decision that is measured.
const PAIRS: &str = "\
    0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849\
    5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

/// The format of key texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyFormat {
    /// `user:00001234`, 13 bytes.
    User,
    /// The form of a UUID, 36 bytes.
    Uuid,
}

impl KeyFormat {
    /// All formats.
    pub const ALL: [Self; 2] = [Self::User, Self::Uuid];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Uuid => "uuid",
        }
    }

    /// The length of a key in bytes.
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

/// A reusable buffer for key texts.
#[derive(Debug)]
pub struct KeyText {
    text: String,
    prefix: usize,
}

impl KeyText {
    /// Creates a buffer for keys of this format.
    #[must_use]
    pub fn new(key_format: KeyFormat) -> Self {
        Self { text: key_format.prefix().to_owned(), prefix: key_format.prefix().len() }
    }

    /// Writes and returns the key with this number, as eight digits.
    #[inline]
    pub fn write(&mut self, number: u32) -> &String {
        self.text.truncate(self.prefix);
        for pair in digits(number) {
            self.text.push_str(pair);
        }
        &self.text
    }
}

/// Returns the last eight digits of a number, in pairs.
#[inline]
pub(crate) fn digits(number: u32) -> [&'static str; 4] {
    [1_000_000, 10_000, 100, 1].map(|scale| {
        let at = 2 * (number / scale % 100) as usize;
        PAIRS.get(at..at + 2).unwrap_or_default()
    })
}

/// Creates `count` keys, each in its own allocation.
#[must_use]
pub fn array(count: u32) -> Vec<String> {
    let mut text = KeyText::new(KeyFormat::User);
    (0..count).map(|number| text.write(number).clone()).collect()
}

/// How the key of each decision is chosen.
#[derive(Debug, Clone, Copy)]
pub enum Draw<'k> {
    /// Always the same key.
    Hot,
    /// A random key of the first `below` keys. Its text is written just before the decision.
    Written {
        /// The number of keys.
        below: u32,
        /// The key format.
        key_format: KeyFormat,
    },
    /// A random key of an array. Its text is rarely in the CPU cache.
    Array(&'k [String]),
    /// Consecutive keys, to add new ones.
    Sequential {
        /// The number of the first key.
        from: u32,
        /// The key format.
        key_format: KeyFormat,
    },
}

/// A pseudo-random number generator that takes about 1 ns per number.
#[derive(Debug)]
pub struct Rng(u64);

impl Rng {
    /// Creates a generator. Equal seeds produce equal numbers.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number, less than `bound`.
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        // Knuth's MMIX generator. Only its high half is random enough.
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
    fn keys_have_the_stated_length_and_end_in_their_number() {
        for key_format in KeyFormat::ALL {
            let mut text = KeyText::new(key_format);
            for number in [0, 1, 1234, 99_999_999] {
                let key = text.write(number);
                assert_eq!(key.len(), key_format.bytes() as usize);
                assert!(key.ends_with(&format!("{number:08}")), "{key}");
            }
        }
    }

    #[test]
    fn random_numbers_cover_the_range_below_the_bound() {
        let mut rng = Rng::new(1);
        let mut seen = [false; 10];
        for _ in 0..1000 {
            seen[rng.below(10) as usize] = true;
        }
        assert_eq!(seen, [true; 10]);
    }
}

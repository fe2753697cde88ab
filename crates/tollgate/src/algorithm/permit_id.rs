//! Ids of permits, which concurrency slots carry.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU128;

/// Random id of a permit. Never 0, which encodes "no permit".
///
/// ```
/// use tollgate::PermitId;
///
/// assert_ne!(PermitId::random(), PermitId::random());
/// assert_eq!(PermitId::from_u128(7).map(PermitId::as_u128), Some(7));
/// assert_eq!(PermitId::from_u128(0), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PermitId(NonZeroU128);

impl PermitId {
    /// Generates a unique id that others cannot guess: hashes with random keys that the standard library
    /// gets from the operating system.
    #[must_use]
    pub fn random() -> Self {
        let keys = RandomState::new();
        let [high, low] = [0u8, 1].map(|half| u128::from(keys.hash_one(half)));
        Self(NonZeroU128::new(high << 64 | low).unwrap_or(NonZeroU128::MIN))
    }

    /// Creates an id from an integer; `None` for 0.
    #[must_use]
    pub const fn from_u128(number: u128) -> Option<Self> {
        match NonZeroU128::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The id as an integer.
    #[must_use]
    pub const fn as_u128(self) -> u128 {
        self.0.get()
    }
}

/// Formats the id as 32 hexadecimal digits.
impl fmt::Display for PermitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

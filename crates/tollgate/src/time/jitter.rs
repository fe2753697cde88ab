//! Random jitter for waits, so that nodes do not act at the same time.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Returns a random duration between 3/4 and 5/4 of `length`, so that nodes that wait for the same event do
/// not all retry at the same time.
///
/// ```
/// use std::time::Duration;
///
/// let wait = tollgate::jittered(Duration::from_secs(1));
/// assert!(wait >= Duration::from_millis(750) && wait < Duration::from_millis(1250));
/// ```
#[must_use]
pub fn jittered(length: Duration) -> Duration {
    let drawn = RandomState::new().hash_one(0_u8) % 1024;
    length * 3 / 4 + length / 2 * u32::try_from(drawn).unwrap_or_default() / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_varies_within_its_bounds() {
        let drawn: Vec<Duration> = (0..200).map(|_| jittered(Duration::from_secs(1))).collect();
        let (min, max) = (drawn.iter().min().unwrap(), drawn.iter().max().unwrap());
        assert!(*min >= Duration::from_millis(750) && *max < Duration::from_millis(1250));
        assert!(*max - *min > Duration::from_millis(100), "{min:?} {max:?}");
    }
}

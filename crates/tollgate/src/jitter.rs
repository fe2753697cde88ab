//! Lengths of time that differ from node to node.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// About as long, from 3/4 to 5/4 of it, drawn anew each time: nodes that wait for the same thing do not all
/// come back at once.
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
    fn nodes_do_not_all_come_at_once() {
        let drawn: Vec<Duration> = (0..200).map(|_| jittered(Duration::from_secs(1))).collect();
        let (least, most) = (drawn.iter().min().unwrap(), drawn.iter().max().unwrap());
        assert!(*least >= Duration::from_millis(750) && *most < Duration::from_millis(1250));
        assert!(*most - *least > Duration::from_millis(100), "{least:?} {most:?}");
    }
}

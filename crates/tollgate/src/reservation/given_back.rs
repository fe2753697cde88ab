//! The sum of what settlements gave back to a token bucket.

use crate::time::{MAX_EXACT, Timestamp};

/// The sum of what settlements gave back to one token bucket, in grains, since a time. Each reservation notes the sum when
/// it takes, so that its settlement knows how much others gave back meanwhile.
///
/// ```
/// use tollgate::Timestamp;
/// use tollgate::reservation::GivenBack;
///
/// let (first, later) = (Timestamp::from_micros(10), Timestamp::from_micros(50));
/// let noted = GivenBack::default().plus(5, first);
/// assert_eq!(noted.plus(7, later).after(noted, later), Some(7));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GivenBack {
    /// When the sum began, in microseconds; 0 if nothing was given back yet.
    since: u64,
    total: u64,
}

impl GivenBack {
    /// Creates a sum from its stored parts.
    #[must_use]
    pub const fn from_parts(since: u64, total: u64) -> Self {
        Self { since, total }
    }

    /// The time at which the sum began, in microseconds, and the sum.
    #[must_use]
    pub const fn parts(&self) -> (u64, u64) {
        (self.since, self.total)
    }

    /// Returns the sum after `grains` more. One that would exceed the exact numbers begins again.
    #[must_use]
    pub const fn plus(self, grains: u64, now: Timestamp) -> Self {
        if grains == 0 {
            return self;
        }
        let begin = if now.as_micros() == 0 { 1 } else { now.as_micros() };
        match self.total.checked_add(grains) {
            Some(total) if self.since > 0 && total <= MAX_EXACT => Self { total, ..self },
            _ => Self { since: begin, total: if grains < MAX_EXACT { grains } else { MAX_EXACT } },
        }
    }

    /// Returns what was added to this sum since a reservation noted it at `taken_at`, or `None` if that is unknown,
    /// because the sum began again.
    #[must_use]
    pub fn after(self, noted: Self, taken_at: Timestamp) -> Option<u64> {
        if self.since == noted.since {
            self.total.checked_sub(noted.total)
        } else if noted.since == 0 && self.since >= taken_at.as_micros() {
            Some(self.total)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_sum_is_not_taken_for_a_known_one() {
        let at = Timestamp::from_micros;
        let noted = GivenBack::default().plus(5, at(10));
        // The sum has expired, and began again.
        let again = GivenBack::default().plus(5, at(30));
        assert_eq!(again.after(noted, at(20)), None);
        assert_eq!(GivenBack::default().after(noted, at(20)), None);
        // It began after the take that saw none, or before it (which a clock that went back can cause).
        assert_eq!(again.after(GivenBack::default(), at(20)), Some(5));
        assert_eq!(again.after(GivenBack::default(), at(31)), None);
        assert_eq!(GivenBack::default().after(GivenBack::default(), at(20)), Some(0));
    }

    #[test]
    fn a_sum_beyond_the_exact_numbers_begins_again() {
        let at = Timestamp::from_micros;
        let noted = GivenBack::default().plus(MAX_EXACT, at(10));
        let more = noted.plus(1, at(20));
        assert_eq!(more, GivenBack { since: 20, total: 1 });
        assert_eq!(more.after(noted, at(15)), None);
    }
}

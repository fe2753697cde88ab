//! Bounds that depend on the speed of the machine: latencies, recovery times, numbers of slow responses.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::scale::Scale;

/// What happens when a bound that depends on the speed of the machine does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// The table shows it, and the row passes: for the test suite, which also runs on busy machines.
    Report,
    /// The row fails: for a quiet machine.
    Assert,
}

impl Timing {
    /// The mode of a scale, unless the command line sets it.
    pub fn of(scale: Scale) -> Self {
        scale.pick(Self::Report, Self::Assert)
    }
}

/// Checks the bounds of one row, and collects those that do not hold.
#[derive(Debug)]
pub struct TimeBounds {
    timing: Timing,
    exceeded: Mutex<Vec<String>>,
}

impl TimeBounds {
    pub(crate) fn new(timing: Timing) -> Self {
        Self { timing, exceeded: Mutex::default() }
    }

    /// Checks a bound. `figure` describes the measured figure if the bound does not hold.
    #[track_caller]
    pub(crate) fn check(&self, is_within: bool, figure: impl FnOnce() -> String) {
        if is_within {
            return;
        }
        match self.timing {
            Timing::Report => self.lock().push(figure()),
            Timing::Assert => panic!("{}", figure()),
        }
    }

    /// Adds the bounds that did not hold to what a row has seen.
    pub(crate) fn annotate(&self, seen: String) -> String {
        let exceeded = self.lock();
        if exceeded.is_empty() {
            return seen;
        }
        format!("{seen}; SLOW (not asserted): {}", exceeded.join(", "))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.exceeded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{TimeBounds, Timing};

    #[test]
    fn reported_bounds_are_added_to_the_result() {
        let bounds = TimeBounds::new(Timing::Report);
        bounds.check(true, || "never built".to_owned());
        assert_eq!(bounds.annotate("10 answers".to_owned()), "10 answers");
        bounds.check(false, || "the slowest response took 2 s".to_owned());
        let seen = bounds.annotate("10 answers".to_owned());
        assert_eq!(seen, "10 answers; SLOW (not asserted): the slowest response took 2 s");
    }

    #[test]
    #[should_panic(expected = "the slowest response took 2 s")]
    fn asserted_bounds_fail_the_row() {
        let bounds = TimeBounds::new(Timing::Assert);
        bounds.check(true, || "never built".to_owned());
        bounds.check(false, || "the slowest response took 2 s".to_owned());
    }
}

//! The bound on admissions, computed from the admissions alone, relative to the current time.
//!
//! It says the same as `tollgate_testkit::admission_bound`, which counts absolute times and is not a small state.

use crate::numbers::{Numbers, small};

/// Largest window of a log.
const MAX_WINDOW: usize = 4;

/// The admissions that still count, of whichever node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Bound {
    admitted: Admitted,
    /// Amount that may be admitted above the limit, because a failover lost that much.
    extra: u8,
    is_exceeded: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Admitted {
    /// At most burst + rate × t in any interval t: the deficit of a bucket that is debited with each admission.
    Bucket { deficit: u8 },
    /// At most the count in any window: admissions by age.
    Log([u8; MAX_WINDOW]),
    /// At most the count in the open window.
    Window { used: u8 },
}

impl Bound {
    pub(crate) fn new(numbers: &Numbers) -> Self {
        let admitted = match numbers.limit.algorithm() {
            tollgate::Algorithm::TokenBucket => Admitted::Bucket { deficit: 0 },
            tollgate::Algorithm::SlidingWindow => Admitted::Log([0; MAX_WINDOW]),
            _ => Admitted::Window { used: 0 },
        };
        Self { admitted, extra: 0, is_exceeded: false }
    }

    /// The key was reset, which starts the bound again. What a failover lost may still be admitted.
    pub(crate) fn reset(&mut self, numbers: &Numbers) {
        self.admitted = Self::new(numbers).admitted;
    }

    pub(crate) const fn is_exceeded(&self) -> bool {
        self.is_exceeded
    }

    /// Returns the deficit of a token bucket in grains, or the admissions that count.
    pub(crate) fn used(&self) -> u64 {
        match self.admitted {
            Admitted::Bucket { deficit: used } | Admitted::Window { used } => used.into(),
            Admitted::Log(counts) => counts.iter().map(|count| u64::from(*count)).sum(),
        }
    }

    /// A request is admitted. `is_open`: the store has an open window, or the limit is not a fixed window.
    pub(crate) fn admit(&mut self, numbers: &Numbers, is_open: bool) {
        let cost = numbers.rate().map_or(1, |(_, grains)| grains);
        let max = numbers.limit.capacity() * cost;
        if is_open && self.used() + cost <= max {
            match &mut self.admitted {
                Admitted::Bucket { deficit: used } | Admitted::Window { used } => {
                    *used += small(cost);
                }
                Admitted::Log(counts) => counts[0] += 1,
            }
        } else if self.extra > 0 {
            self.extra -= 1;
        } else {
            self.is_exceeded = true;
        }
    }

    /// One tick passes. `is_open`: after it.
    pub(crate) fn tick(&mut self, numbers: &Numbers, is_open: bool) {
        match &mut self.admitted {
            Admitted::Bucket { deficit } => {
                let give = numbers.rate().map_or(0, |(give, _)| give);
                *deficit = deficit.saturating_sub(small(give));
            }
            Admitted::Log(counts) => {
                counts.rotate_right(1);
                counts[0] = 0;
                // Without effect for the largest window, whose oldest count has just left.
                if let Some(expired) = counts.get_mut(usize::from(numbers.window)) {
                    *expired = 0;
                }
            }
            Admitted::Window { used } if !is_open => *used = 0,
            Admitted::Window { .. } => {}
        }
    }

    /// The store failed over and lost this amount. `is_open`: afterwards.
    pub(crate) fn fail_over(&mut self, lost: u8, is_open: bool) {
        self.extra += lost;
        if let Admitted::Window { used } = &mut self.admitted
            && !is_open
        {
            *used = 0;
        }
    }
}

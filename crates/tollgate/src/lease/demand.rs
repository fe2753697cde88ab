//! Demand for plans: how many decisions this node made recently, by plan.

/// Number of plans whose demand one shard knows. Others replace them, which only delays a lease.
const SLOTS: usize = 1024;

/// The recent decisions of plans that are not leased, in a fixed amount of memory.
#[derive(Debug, Default)]
pub(super) struct DemandSketch {
    /// Empty until the first use.
    slots: Box<[Slot]>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    plan: u64,
    counts: PeriodCounts,
}

/// Counts of the current and the previous period.
#[derive(Debug, Clone, Copy, Default)]
struct PeriodCounts {
    period: u64,
    current: u64,
    previous: u64,
}

impl DemandSketch {
    /// Counts a decision of a plan, and returns the number of decisions in the busier one of this and the last period.
    pub(super) fn record(&mut self, plan: u64, period: u64) -> u64 {
        if self.slots.is_empty() {
            self.slots = vec![Slot::default(); SLOTS].into();
        }
        // The low bits select the shard.
        let index = usize::try_from(plan >> 32).unwrap_or(0) % SLOTS;
        let Some(slot) = self.slots.get_mut(index) else { return 0 };
        if slot.plan != plan {
            *slot = Slot { plan, counts: PeriodCounts::default() };
        }
        slot.counts.add(period, 1);
        slot.counts.recent()
    }
}

impl PeriodCounts {
    fn add(&mut self, period: u64, amount: u64) {
        // A thread that read the clock before another one may get here after it. Its decision counts in the new period.
        let is_current = period == self.period || period + 1 == self.period;
        if !is_current {
            self.previous = if self.period + 1 == period { self.current } else { 0 };
            (self.period, self.current) = (period, 0);
        }
        self.current = self.current.saturating_add(amount);
    }

    fn recent(self) -> u64 {
        self.current.max(self.previous)
    }
}

/// The amounts that a leased plan took recently, by take.
#[derive(Debug)]
pub(super) struct TakenAmounts(Box<[PeriodCounts]>);

impl TakenAmounts {
    /// Begins with these amounts in this period.
    pub(super) fn new(amounts: impl Iterator<Item = u64>, period: u64) -> Self {
        let counts = |current| PeriodCounts { period, current, previous: 0 };
        Self(amounts.map(counts).collect())
    }

    pub(super) fn add(&mut self, costs: impl Iterator<Item = u64>, period: u64) {
        self.0.iter_mut().zip(costs).for_each(|(counts, cost)| counts.add(period, cost));
    }

    /// Returns the amounts of the busier one of this and the last period.
    pub(super) fn recent(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|counts| counts.recent())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demand_is_that_of_the_busier_of_two_periods() {
        let mut sketch = DemandSketch::default();
        for expected in 1..=9 {
            assert_eq!(sketch.record(7, 100), expected);
        }
        assert_eq!(sketch.record(7, 101), 9);
        assert_eq!(sketch.record(7, 102), 1, "the last period had one");
        assert_eq!(sketch.record(7, 110), 1, "idle periods count as zero");
    }
}

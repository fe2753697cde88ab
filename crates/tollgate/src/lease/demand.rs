//! Demand for plans: how many decisions this node made recently, by plan.

use std::time::Duration;

use super::time::LeaseTime;

/// Number of plans whose demand one shard knows. Others replace the least busy ones, which only delays a lease.
const SLOTS: usize = 1024;

/// Number of slots that a plan can use. With one, two busy plans of a slot would replace each other at every decision, and
/// neither would ever be leased.
const WAYS: usize = 4;

/// The recent decisions of plans that are not leased, in a fixed amount of memory.
#[derive(Debug, Default)]
pub(super) struct DemandSketch {
    /// Empty until the first use.
    slots: Box<[Slot]>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    plan: u64,
    /// The hold of the plan, which is the length of its periods.
    hold: Duration,
    counts: PeriodCounts,
}

impl Slot {
    /// Returns the decisions in the busier one of the current and the last period of the plan.
    fn recent_at(&self, now: LeaseTime) -> u64 {
        self.counts.recent_at(now.period(self.hold))
    }
}

/// Counts of the current and the previous period.
#[derive(Debug, Clone, Copy, Default)]
struct PeriodCounts {
    period: u64,
    current: u64,
    previous: u64,
}

impl DemandSketch {
    /// Counts a decision of a plan with this hold, and returns the number of decisions in the busier one of this and the last
    /// period of that length.
    pub(super) fn record(&mut self, plan: u64, hold: Duration, now: LeaseTime) -> u64 {
        if self.slots.is_empty() {
            self.slots = vec![Slot::default(); SLOTS].into();
        }
        // The low bits select the shard.
        let set = usize::try_from(plan >> 32).unwrap_or(0) % (SLOTS / WAYS) * WAYS;
        let ways = self.slots.get_mut(set..set + WAYS).unwrap_or_default();
        let known = ways.iter().position(|slot| slot.plan == plan && slot.hold == hold);
        let slot = match known {
            Some(way) => ways.get_mut(way),
            None => ways.iter_mut().min_by_key(|slot| slot.recent_at(now)),
        };
        let Some(slot) = slot else { return 0 };
        if known.is_none() {
            *slot = Slot { plan, hold, counts: PeriodCounts::default() };
        }
        slot.counts.add(now.period(hold), 1);
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

    /// As [`Self::recent`], if the last decision may have been in an earlier period.
    fn recent_at(self, period: u64) -> u64 {
        match period.saturating_sub(self.period) {
            0 => self.recent(),
            1 => self.current,
            _ => 0,
        }
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

    const HOLD: Duration = Duration::from_secs(1);
    const SHORT: Duration = Duration::from_millis(125);

    fn at(millis: u64) -> LeaseTime {
        LeaseTime::new(Duration::from_millis(millis), Duration::ZERO)
    }

    #[test]
    fn demand_is_that_of_the_busier_of_two_periods() {
        let mut sketch = DemandSketch::default();
        for expected in 1..=9 {
            assert_eq!(sketch.record(7, HOLD, at(100_000)), expected);
        }
        assert_eq!(sketch.record(7, HOLD, at(101_000)), 9);
        assert_eq!(sketch.record(7, HOLD, at(102_000)), 1, "the last period had one");
        assert_eq!(sketch.record(7, HOLD, at(110_000)), 1, "idle periods count as zero");
    }

    #[test]
    fn busy_plans_of_one_set_do_not_replace_each_other() {
        let mut sketch = DemandSketch::default();
        for expected in 1..=16 {
            for plan in 1..=WAYS as u64 {
                assert_eq!(sketch.record(plan, HOLD, at(100_000)), expected);
            }
        }
        assert_eq!(sketch.record(9, HOLD, at(101_000)), 1, "a new plan replaces one of them");
        let mut is_known = |plan: &u64| sketch.record(*plan, HOLD, at(101_000)) == 16;
        assert_eq!((1..=WAYS as u64).filter(&mut is_known).count(), WAYS - 1);
    }

    /// Periods of different lengths have different numbers.
    #[test]
    fn idle_plans_with_short_holds_make_room_for_busy_plans_with_long_ones() {
        for idle in [2, 60, 3600] {
            let mut sketch = DemandSketch::default();
            for plan in 1..WAYS as u64 {
                for _ in 0..16 {
                    sketch.record(plan, SHORT, at(100_000));
                }
            }
            let mut counted = [0, 0];
            for millis in 0..100 {
                let now = at(100_000 + idle * 1000 + millis);
                counted = [11, 12].map(|plan| sketch.record(plan, HOLD, now));
            }
            assert_eq!(counted, [100, 100], "after {idle} s");
        }
    }

    #[test]
    fn busy_plan_with_a_long_hold_remains_beside_rare_plans_with_short_ones() {
        let mut sketch = DemandSketch::default();
        let mut most = 0;
        for tick in 0..500 {
            let now = at(100_000 + tick * 10);
            most = most.max(sketch.record(1, HOLD, now));
            if tick % 5 == 0 {
                // Ever new plans.
                sketch.record(100 + tick, SHORT, now);
            }
        }
        assert_eq!(most, 100);
    }
}

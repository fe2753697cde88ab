//! The bound of each algorithm on admissions, computed from the admissions alone: it needs no store and no lease.

use std::collections::VecDeque;

use tollgate::Limit;
use tollgate::algorithm::Parameters;

/// Checks that the admissions of one key stay within its limit, wherever they were decided. Times are microseconds of
/// one clock, in order.
#[derive(Debug, Clone)]
pub struct AdmissionBound {
    count: u128,
    window: u64,
    state: State,
}

/// Admissions that still count.
#[derive(Debug, Clone)]
enum State {
    /// Never more than burst + rate × t in any interval t: the deficit of a bucket that is debited when a request is
    /// admitted, in grains.
    Bucket { give: u128, grains: u128, at: u64, deficit: u128 },
    /// Never more than the count in any window.
    Log(VecDeque<(u64, u64)>),
    /// Never more than the count in a window, which the first debit of the store opens.
    Fixed { opened: Option<u64>, used: u128 },
    /// Never more than the count in an aligned window.
    Aligned { number: u64, used: u128 },
    /// Never more than the count by the weighted estimate of the admissions.
    Counter { number: u64, previous: u128, used: u128 },
}

impl AdmissionBound {
    /// Creates the bound of an unused key. Calendar windows must be whole UTC units of a day at most.
    #[must_use]
    pub fn new(limit: &Limit) -> Self {
        let window = u64::try_from(limit.window().as_micros()).expect("short window");
        let state = match limit.parameters() {
            Parameters::TokenBucket(bucket) => {
                let (give, grains) = bucket.rate();
                State::Bucket { give: give.into(), grains: grains.into(), at: 0, deficit: 0 }
            }
            Parameters::SlidingWindow(_) => State::Log(VecDeque::new()),
            Parameters::FixedWindow(_) => State::Fixed { opened: None, used: 0 },
            Parameters::AlignedWindow(_) => State::Aligned { number: 0, used: 0 },
            Parameters::SlidingCounter(_) => State::Counter { number: 0, previous: 0, used: 0 },
            Parameters::Block | Parameters::Concurrency(_) => panic!("{limit:?} is not leased"),
        };
        Self { count: limit.capacity().into(), window, state }
    }

    /// The store debited the key, which opens a fixed window.
    pub fn debited(&mut self, now: u64) {
        if let State::Fixed { opened, used } = &mut self.state
            && opened.is_none_or(|opened| opened + self.window <= now)
        {
            (*opened, *used) = (Some(now), 0);
        }
    }

    /// A request was admitted.
    ///
    /// # Errors
    /// The admissions exceed the limit.
    pub fn admit(&mut self, now: u64, cost: u64) -> Result<(), String> {
        let (window, cost) = (self.window, u128::from(cost));
        let (used, max) = match &mut self.state {
            State::Bucket { give, grains, at, deficit } => {
                *deficit = deficit.saturating_sub(*give * u128::from(now - *at)) + cost * *grains;
                *at = now;
                (*deficit, self.count * *grains)
            }
            State::Log(log) => {
                log.retain(|(at, _)| at + window > now);
                log.push_back((now, u64::try_from(cost).expect("a cost")));
                (log.iter().map(|(_, cost)| u128::from(*cost)).sum(), self.count)
            }
            State::Fixed { opened, used } => {
                if opened.is_none_or(|opened| opened + window <= now) {
                    return Err(format!("admitted {cost} at {now}, when no window was open"));
                }
                *used += cost;
                (*used, self.count)
            }
            State::Aligned { number, used } => {
                if *number != now / window {
                    (*number, *used) = (now / window, 0);
                }
                *used += cost;
                (*used, self.count)
            }
            State::Counter { number, previous, used } => {
                let current = now / window;
                if *number != current {
                    *previous = if *number + 1 == current { *used } else { 0 };
                    (*number, *used) = (current, 0);
                }
                *used += cost;
                let weight = u128::from(window - now % window);
                let window = u128::from(window);
                (*used * window + *previous * weight, self.count * window)
            }
        };
        let is_within = used <= max;
        is_within.then_some(()).ok_or_else(|| format!("{used} of {max} were used at {now}"))
    }
}

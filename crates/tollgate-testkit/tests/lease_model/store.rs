//! A key in the store, relative to the current time.

use tollgate::Timestamp;
use tollgate::algorithm::{Op, Parameters, Reply, State};

use crate::numbers::{Numbers, small};

/// The current time. The states of the model contain ages only, so that a run may last any time.
const NOW: u64 = 1_000;

/// Maximum number of takes that lead to a state.
const MAX_TAKES: usize = 5;

/// A key, as the fewest takes that lead to its state, oldest first. The state itself belongs to the product: it is made
/// by applying the takes to a key that was never used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct StoredKey([Option<PastTake>; MAX_TAKES]);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct PastTake {
    age: u8,
    amount: u8,
}

impl StoredKey {
    /// Applies an operation of the product. Returns `None`, and changes nothing, if it is refused.
    pub(crate) fn apply(&mut self, numbers: &Numbers, op: Op) -> Option<Reply> {
        let (reply, state) = self.step(numbers, op);
        if !reply.is_allowed() {
            return None;
        }
        let amount = match op {
            Op::Take { cost } => cost,
            Op::Lease { amount, .. } => amount,
            _ => 0,
        };
        *self = self.relative(numbers, (reply, &state), small(amount));
        Some(reply)
    }

    /// One tick passes.
    pub(crate) fn tick(&mut self, numbers: &Numbers) {
        self.0.iter_mut().flatten().for_each(|take| take.age += 1);
        let (reply, state) = self.step(numbers, Op::Peek { cost: 0 });
        *self = self.relative(numbers, (reply, &state), 0);
    }

    /// Returns whether the key counts anything: a fixed window is open.
    pub(crate) fn is_used(&self) -> bool {
        self.0.iter().flatten().next().is_some()
    }

    /// Returns the deficit of a token bucket in grains, or the used count.
    pub(crate) fn used(&self, numbers: &Numbers) -> u64 {
        let (reply, state) = self.step(numbers, Op::Peek { cost: 0 });
        match numbers.rate() {
            Some(_) => numbers.limit.parameters().deficit(&state, at(0)),
            None => numbers.limit.capacity() - reply.remaining(),
        }
    }

    /// Applies an operation to the state, by the step function of the product.
    fn step(&self, numbers: &Numbers, op: Op) -> (Reply, State) {
        let (parameters, mut state) = (numbers.limit.parameters(), State::Fresh);
        for take in self.0.iter().flatten() {
            let past = Op::Take { cost: take.amount.into() };
            let reply = parameters.step(&mut state, at(take.age), past);
            assert!(reply.is_allowed(), "{self:?} leads to no state");
        }
        (parameters.step(&mut state, at(0), op), state)
    }

    /// Returns the fewest takes that lead to the state after an operation, which took `amount`.
    fn relative(&self, numbers: &Numbers, (reply, state): (Reply, &State), amount: u8) -> Self {
        let used = numbers.limit.capacity() - reply.remaining();
        match numbers.limit.parameters() {
            Parameters::TokenBucket(bucket) => {
                let (give, grains) = bucket.rate();
                let deficit = numbers.limit.parameters().deficit(state, at(0));
                let amount = deficit.div_ceil(grains);
                Self::of_one((amount * grains - deficit) / give, amount)
            }
            Parameters::SlidingWindow(window) => self.logged(small(window.length()), amount),
            _ => {
                let left = u64::try_from(reply.reset_after().as_micros()).expect("a short time");
                Self::of_one(u64::from(numbers.window) - left, used)
            }
        }
    }

    fn of_one(age: u64, amount: u64) -> Self {
        let take = PastTake { age: small(age), amount: small(amount) };
        let mut takes = [None; MAX_TAKES];
        takes[0] = Some(take).filter(|_| amount > 0);
        Self(takes)
    }

    /// Returns the log without expired takes, and with this amount now.
    fn logged(&self, length: u8, amount: u8) -> Self {
        let is_live = |take: &&PastTake| take.age < length;
        let mut takes = [None; MAX_TAKES];
        let mut count = 0;
        for take in self.0.iter().flatten().filter(is_live) {
            takes[count] = Some(*take);
            count += 1;
        }
        match count.checked_sub(1).and_then(|last| takes[last].as_mut()) {
            Some(newest) if newest.age == 0 => newest.amount += amount,
            _ if amount > 0 => takes[count] = Some(PastTake { age: 0, amount }),
            _ => {}
        }
        Self(takes)
    }
}

fn at(age: u8) -> Timestamp {
    Timestamp::from_micros(NOW - u64::from(age))
}

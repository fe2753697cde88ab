//! Sliding window: a log of accepted takes, exact in every window.
//!
//! A take expires at exactly its time plus the window. Under a leased limit it counts for the time of a lease longer,
//! because a lease is logged when it is taken and spent up to that much later. Each entry contains a running total, so the sum
//! of any part of the log is one subtraction and a wait is one binary search.

use std::collections::VecDeque;

use super::adjustment::{Adjustment, Change, room_for_debt, time_of};
use super::saved::Saved;
use super::{Op, Reply, Wait};
use crate::fields::{Fields, put_length, put_longs};
use crate::quota::{Quota, QuotaError, QuotaErrorKind};
use crate::time::{MAX_PERIOD, SECOND, saturating_micros};

/// Maximum count of a limit; use `sliding_counter` for higher counts.
const MAX_COUNT: u64 = 100_000;

/// Maximum microseconds for which a take counts: the longest window, and the longest lease.
const MAX_LENGTH: u64 = MAX_PERIOD + SECOND;

/// Capacity in entries that an empty log keeps.
const MIN_CAPACITY: usize = 8;

/// Parameters of a sliding window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlidingWindow {
    count: u64,
    length: u64,
}

/// Accepted takes of one key, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    length: u64,
    /// Running total before the first entry.
    base: u64,
    entries: VecDeque<Entry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    at: u64,
    /// Sum of all costs up to and including this take.
    total: u64,
}

impl SlidingWindow {
    pub(crate) fn new(quota: &Quota) -> Result<Self, QuotaError> {
        if quota.count() > MAX_COUNT {
            return Err(QuotaError::built(
                QuotaErrorKind::Count,
                format!(
                    "a sliding window allows a count of at most {MAX_COUNT}, not {}; use \
                     sliding_counter or token_bucket",
                    quota.count(),
                ),
            ));
        }
        Ok(Self { count: quota.count(), length: quota.period_micros() })
    }

    /// Maximum sum of costs in any window.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Microseconds for which a take counts: the window, and for a leased limit also the time of a lease.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the same limit, under which a take counts for `length` microseconds.
    pub(crate) const fn with_length(&self, length: u64) -> Self {
        Self { count: self.count, length }
    }

    #[inline(never)]
    pub(super) fn step(&self, log: &mut Log, now: u64, op: Op) -> Reply {
        self.settle(log, now);
        let mut wait = Wait::NONE;
        match op {
            Op::Peek { cost } => wait = self.wait(log, now, cost),
            Op::Take { cost } | Op::Hold { cost, .. } | Op::Lease { amount: cost, .. } => {
                wait = self.wait(log, now, cost);
                if wait == Wait::NONE && cost > 0 {
                    log.drop_expired(self.length, now);
                    log.append(now, cost);
                }
            }
            Op::Refund { cost } => {
                if cost > 0 && log.used(self.length, now) > 0 {
                    log.drop_expired(self.length, now);
                    log.take_back(cost);
                }
            }
            Op::Debit { cost, age } => self.debit(log, now, cost, saturating_micros(age)),
        }
        self.reply(log, now, wait)
    }

    pub(super) fn adjust(&self, log: &mut Log, now: u64, adjustment: Adjustment) -> Change {
        self.settle(log, now);
        let used = log.used(self.length, now);
        Change::of(match adjustment {
            Adjustment::GiveBack { amount, age, .. } => {
                log.drop_expired(self.length, now);
                log.give_back(time_of(now, age), amount)
            }
            Adjustment::Overdraw { amount } => {
                let amount = amount.min(room_for_debt(used, self.count));
                if amount > 0 {
                    log.drop_expired(self.length, now);
                    log.append(now, amount);
                }
                amount
            }
        })
    }

    /// Repairs entries later than `now` and converts a log written with another window length.
    fn settle(&self, log: &mut Log, now: u64) {
        if log.length != self.length {
            // A take that expired under the old length stays expired under a longer one.
            log.drop_expired(log.length, now);
            log.length = self.length;
        }
        for entry in log.entries.iter_mut().rev().take_while(|entry| entry.at > now) {
            entry.at = now;
        }
    }

    fn wait(&self, log: &Log, now: u64, cost: u64) -> Wait {
        let Some(room) = self.count.checked_sub(cost) else { return Wait::FOREVER };
        if cost == 0 || log.used(self.length, now) <= room {
            return Wait::NONE;
        }
        // Enough quota is free once all entries up to this one have expired.
        let leaving = log.last_total() - room;
        let last_to_leave = log.entries.partition_point(|entry| entry.total < leaving);
        let wait = log.entries.get(last_to_leave).map_or(0, |entry| entry.at + self.length - now);
        Wait(wait)
    }

    fn debit(&self, log: &mut Log, now: u64, cost: u64, age: u64) {
        let cost = cost.min(self.count.saturating_sub(log.used(self.length, now)));
        if age < self.length && cost > 0 {
            log.drop_expired(self.length, now);
            log.insert(now.saturating_sub(age), cost);
        }
    }

    fn reply(&self, log: &Log, now: u64, wait: Wait) -> Reply {
        let used = log.used(self.length, now);
        let reset_after = match log.entries.back() {
            Some(newest) if used > 0 => newest.at + self.length - now,
            _ => 0,
        };
        let (remaining, debt) = (self.count.saturating_sub(used), used.saturating_sub(self.count));
        Reply { wait, remaining, debt, reset_after }
    }
}

impl Log {
    /// Returns the sum of the takes within a window of this length.
    fn used(&self, length: u64, now: u64) -> u64 {
        let expired = self.expired(length, now);
        let gone = match expired.checked_sub(1).and_then(|last| self.entries.get(last)) {
            Some(entry) => entry.total,
            None => self.base,
        };
        self.last_total() - gone
    }

    /// Returns how many entries have left a window of this length.
    fn expired(&self, length: u64, now: u64) -> usize {
        // Usually none has expired: check the front before the binary search.
        match self.entries.front() {
            Some(oldest) if oldest.at + length <= now => {
                self.entries.partition_point(|entry| entry.at + length <= now)
            }
            _ => 0,
        }
    }

    fn last_total(&self) -> u64 {
        self.entries.back().map_or(self.base, |entry| entry.total)
    }

    fn drop_expired(&mut self, length: u64, now: u64) {
        for gone in self.entries.drain(..self.expired(length, now)) {
            self.base = gone.total;
        }
        if self.entries.is_empty() {
            self.base = 0;
            // Keep a small buffer, so that infrequent takes do not allocate each time.
            if self.entries.capacity() > MIN_CAPACITY {
                self.entries = VecDeque::new();
            }
        }
    }

    fn append(&mut self, at: u64, cost: u64) {
        let total = self.last_total() + cost;
        match self.entries.back_mut() {
            Some(newest) if newest.at == at => newest.total = total,
            _ => self.entries.push_back(Entry { at, total }),
        }
    }

    /// Inserts a take with a past time in chronological order. One entry has all takes of a time, so that a settlement finds
    /// them.
    fn insert(&mut self, at: u64, cost: u64) {
        let place = self.entries.partition_point(|entry| entry.at < at);
        if self.entries.get(place).is_none_or(|entry| entry.at != at) {
            let before = match place.checked_sub(1).and_then(|index| self.entries.get(index)) {
                Some(entry) => entry.total,
                None => self.base,
            };
            self.entries.insert(place, Entry { at, total: before });
        }
        for entry in self.entries.range_mut(place..) {
            entry.total += cost;
        }
    }

    /// Removes `cost` from the log, the newest entries first.
    fn take_back(&mut self, cost: u64) {
        let left = self.last_total().saturating_sub(cost).max(self.base);
        let kept = self.entries.partition_point(|entry| entry.total < left);
        if left == self.base {
            self.entries.clear();
        } else {
            self.entries.truncate(kept + 1);
            if let Some(newest) = self.entries.back_mut() {
                newest.total = left;
            }
        }
    }

    /// Removes up to `cost` from the takes at time `at`. Returns the removed amount.
    fn give_back(&mut self, at: u64, cost: u64) -> u64 {
        let place = self.entries.partition_point(|entry| entry.at < at);
        let before = match place.checked_sub(1).and_then(|index| self.entries.get(index)) {
            Some(entry) => entry.total,
            None => self.base,
        };
        let Some(entry) = self.entries.get(place).filter(|entry| entry.at == at) else { return 0 };
        let weight = entry.total - before;
        let removed = cost.min(weight);
        for entry in self.entries.range_mut(place..) {
            entry.total -= removed;
        }
        if removed == weight {
            self.entries.remove(place);
        }
        removed
    }

    pub(super) fn is_fresh(&self, now: u64) -> bool {
        self.entries.back().is_none_or(|newest| newest.at + self.length <= now)
    }
}

impl Saved for Log {
    /// Writes each take with its cost; running totals start from zero when loaded.
    fn save(&self, out: &mut Vec<u8>) {
        put_longs(out, [self.length]);
        // There are at most MAX_COUNT entries, so the length always fits.
        if put_length(out, self.entries.len()).is_some() {
            let mut before = self.base;
            for entry in &self.entries {
                put_longs(out, [entry.at, entry.total - before]);
                before = entry.total;
            }
        }
    }

    fn load(fields: &mut Fields<'_>) -> Option<Self> {
        let length = fields.long().filter(|length| *length <= MAX_LENGTH)?;
        let count = fields.entries(16)?;
        let mut log = Self { length, base: 0, entries: VecDeque::with_capacity(count) };
        for _ in 0..count {
            let (at, cost) = (fields.timestamp()?, fields.exact()?);
            let is_next = log.entries.back().is_none_or(|last| last.at <= at);
            let total = log.last_total() + cost;
            if !is_next || cost == 0 || total > 2 * MAX_COUNT {
                return None;
            }
            log.entries.push_back(Entry { at, total });
        }
        (length > 0 || count == 0).then_some(log)
    }
}

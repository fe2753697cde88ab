//! Fixed windows: one counter per window, reset to zero when the window ends.
//!
//! A [`FixedWindow`] opens at the first take after the previous window closed. An [`AlignedWindow`]
//! follows the calendar. Both can admit up to twice the count across a window boundary.

use super::adjustment::{Adjustment, Change, room_for_debt, time_of};
use super::arithmetic::debited;
use super::calendar::Calendar;
use super::saved::Saved;
use super::{Op, Reply, Wait};
use crate::fields::{Fields, put_longs};
use crate::quota::{Quota, QuotaError};
use crate::time::{Timestamp, saturating_micros};

/// Parameters of a window that opens with its first take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedWindow {
    count: u64,
    length: u64,
}

/// Parameters of a window aligned to the calendar, such as a minute or a month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlignedWindow {
    count: u64,
    calendar: Calendar,
}

/// Open window of one key: its start, last take, used count and length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Window {
    opened: u64,
    last: u64,
    used: u64,
    length: u64,
}

/// Calendar window of one key: its last take, used count and end.
///
/// The state stores the time of the last take, not the window start. If the calendar unit changes, the
/// last take shows whether the count belongs to the current window, whichever unit is longer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Aligned {
    last: u64,
    used: u64,
    end: u64,
}

/// Returns the time of `op` and the operation to apply; a debit from before `earliest` becomes a peek.
fn stamp(op: Op, now: u64, earliest: u64) -> (u64, Op) {
    match op {
        Op::Debit { age, .. } => match now.checked_sub(saturating_micros(age)) {
            Some(then) if then >= earliest => (then, op),
            _ => (now, Op::Peek { cost: 0 }),
        },
        _ => (now, op),
    }
}

/// Result of an operation on the counter of one window.
struct Counted {
    wait: Wait,
    used: u64,
}

/// Applies `op` to a window's used count, with `left` microseconds until the window ends.
fn count(limit: u64, used: u64, left: u64, op: Op) -> Counted {
    let wait = |cost: u64| {
        if cost > limit {
            Wait::FOREVER
        } else if used.min(limit) <= limit - cost {
            Wait::NONE
        } else {
            Wait(left)
        }
    };
    match op {
        Op::Peek { cost } => Counted { wait: wait(cost), used },
        Op::Take { cost } | Op::Hold { cost, .. } | Op::Lease { amount: cost, .. } => {
            match wait(cost) {
                Wait::NONE => Counted { wait: Wait::NONE, used: used + cost },
                refused => Counted { wait: refused, used },
            }
        }
        Op::Refund { cost } => Counted { wait: Wait::NONE, used: used.saturating_sub(cost) },
        Op::Debit { cost, .. } => Counted { wait: Wait::NONE, used: debited(used, cost, limit) },
    }
}

fn reply(limit: u64, wait: Wait, used: u64, left: u64) -> Reply {
    let reset_after = if used > 0 { left } else { 0 };
    let (remaining, debt) = (limit.saturating_sub(used), used.saturating_sub(limit));
    Reply { wait, remaining, debt, reset_after }
}

/// Applies an adjustment to a window's used count. A take from before `start` no longer counts. Returns the new count.
fn adjusted(
    limit: u64,
    used: u64,
    (start, now): (u64, u64),
    adjustment: Adjustment,
) -> (u64, Change) {
    match adjustment {
        Adjustment::GiveBack { age, .. } if time_of(now, age) < start => (used, Change::default()),
        Adjustment::GiveBack { amount, .. } => {
            let amount = amount.min(used);
            (used - amount, Change::of(amount))
        }
        Adjustment::Overdraw { amount } => {
            let amount = amount.min(room_for_debt(used, limit));
            (used + amount, Change::of(amount))
        }
    }
}

impl FixedWindow {
    pub(crate) fn new(quota: &Quota) -> Self {
        Self { count: quota.count(), length: quota.period_micros() }
    }

    /// Maximum sum of costs per window.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    #[inline(never)]
    pub(super) fn step(&self, state: &mut Window, now: u64, op: Op) -> Reply {
        let (mut window, repaired) = self.settle(*state, now);
        let before = window.used;
        let (stamp, op) = stamp(op, now, now.saturating_sub(self.length - 1));
        if before == 0 {
            (window.opened, window.last) = (stamp, stamp);
        }
        let left = window.opened + self.length - now;
        let counted = count(self.count, before, left, op);
        window.used = counted.used;
        if window.used != before {
            window.last = window.last.max(stamp);
        }
        if repaired || window.used != before {
            *state = window;
        }
        reply(self.count, counted.wait, window.used, left)
    }

    pub(super) fn adjust(&self, state: &mut Window, now: u64, adjustment: Adjustment) -> Change {
        let (mut window, repaired) = self.settle(*state, now);
        let before = window.used;
        if before == 0 {
            (window.opened, window.last) = (now, now);
        }
        let (used, change) = adjusted(self.count, before, (window.opened, now), adjustment);
        window.used = used;
        if used != before {
            window.last = now;
        }
        if repaired || used != before {
            *state = window;
        }
        change
    }

    fn settle(&self, mut window: Window, now: u64) -> (Window, bool) {
        let ahead = window.last > now;
        if ahead {
            window.last = now;
            window.opened = window.opened.min(now);
        }
        if window.opened + window.length <= now {
            window.used = 0;
        }
        let renumbered = window.length != self.length;
        window.length = self.length;
        if window.opened + self.length <= now {
            // Closed under the new, shorter length; a take within that length still counts.
            window.opened = window.last;
            if window.last + self.length <= now {
                window.used = 0;
            }
        }
        (window, window.used > 0 && (ahead || renumbered))
    }
}

impl Window {
    pub(super) fn is_fresh(&self, now: u64) -> bool {
        self.used == 0 || self.opened + self.length <= now
    }
}

impl AlignedWindow {
    pub(crate) fn new(count: u64, calendar: Calendar) -> Result<Self, QuotaError> {
        Quota::try_new(count, std::time::Duration::from_secs(1))?;
        Ok(Self { count, calendar })
    }

    /// Maximum sum of costs per window.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Calendar that defines the start and end of each window.
    #[must_use]
    pub fn calendar(&self) -> &Calendar {
        &self.calendar
    }

    #[inline(never)]
    pub(super) fn step(&self, state: &mut Aligned, now: u64, op: Op) -> Reply {
        let window = self.calendar.window(Timestamp::from_micros(now));
        let (start, end) = (window.start.as_micros(), window.end.as_micros());
        let (mut aligned, repaired) = Self::settle(*state, now, start, end);
        let before = aligned.used;
        let (stamp, op) = stamp(op, now, start);
        if before == 0 {
            aligned.last = stamp;
        }
        // At the maximum timestamp the window end is not after `now`.
        let left = (end - now).max(1);
        let counted = count(self.count, before, left, op);
        aligned.used = counted.used;
        if aligned.used != before {
            aligned.last = aligned.last.max(stamp);
        }
        if repaired || aligned.used != before {
            *state = aligned;
        }
        reply(self.count, counted.wait, aligned.used, left)
    }

    pub(super) fn adjust(&self, state: &mut Aligned, now: u64, adjustment: Adjustment) -> Change {
        let window = self.calendar.window(Timestamp::from_micros(now));
        let (start, end) = (window.start.as_micros(), window.end.as_micros());
        let (mut aligned, repaired) = Self::settle(*state, now, start, end);
        let before = aligned.used;
        let (used, change) = adjusted(self.count, before, (start, now), adjustment);
        aligned.used = used;
        if used != before {
            aligned.last = now;
        }
        if repaired || used != before {
            *state = aligned;
        }
        change
    }

    fn settle(mut aligned: Aligned, now: u64, start: u64, end: u64) -> (Aligned, bool) {
        let ahead = aligned.last > now;
        if ahead {
            aligned.last = now;
        } else if aligned.end <= now || aligned.last < start {
            aligned.used = 0;
        }
        let renumbered = aligned.end != end;
        aligned.end = end;
        (aligned, aligned.used > 0 && (ahead || renumbered))
    }
}

impl Aligned {
    pub(super) fn is_fresh(&self, now: u64) -> bool {
        self.used == 0 || self.end <= now
    }
}

impl Saved for Window {
    fn save(&self, out: &mut Vec<u8>) {
        put_longs(out, [self.opened, self.last, self.used, self.length]);
    }

    fn load(fields: &mut Fields<'_>) -> Option<Self> {
        let (opened, last) = (fields.timestamp()?, fields.timestamp()?);
        let (used, length) = (fields.exact()?, fields.length()?);
        (opened <= last).then_some(Self { opened, last, used, length })
    }
}

impl Saved for Aligned {
    fn save(&self, out: &mut Vec<u8>) {
        put_longs(out, [self.last, self.used, self.end]);
    }

    fn load(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self { last: fields.timestamp()?, used: fields.exact()?, end: fields.exact()? })
    }
}

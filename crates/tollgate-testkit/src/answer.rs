//! Operations and answers as plain numbers, for comparison and for golden vectors.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tollgate::lease::TakeGrant;
use tollgate::{Limit, Mode, Status, Verdict};

use crate::spec::{is_false, is_zero};

/// Operation on one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Operation {
    /// Takes the cost or refuses.
    Take {
        /// Quota units.
        cost: u64,
    },
    /// Takes slots for a permit, or refuses; the same as `Take` for limits without slots.
    Hold {
        /// Number of slots.
        cost: u64,
        /// Permit number, not 0.
        permit: u64,
    },
    /// Releases the slots of a permit; the answer has the figures after it.
    Release {
        /// Permit number.
        permit: u64,
    },
    /// Renews the slots of a permit for their original TTL; the answer has the figures after it.
    Renew {
        /// Permit number.
        permit: u64,
    },
    /// Evaluates a take and takes nothing.
    Peek {
        /// Quota units.
        cost: u64,
    },
    /// Refunds the cost.
    Refund {
        /// Quota units.
        cost: u64,
    },
    /// Debits the cost unconditionally, as of some time ago.
    Debit {
        /// Quota units.
        cost: u64,
        /// Age of the debit in microseconds.
        age_us: u64,
    },
    /// Leases an amount, or takes the cost if too little is left for a lease. The answer has the figures after it.
    Lease {
        /// Quota units that are taken in any case.
        cost: u64,
        /// Wanted quota units, with the cost.
        amount: u64,
        /// Time in microseconds in which the lease is spent.
        hold_us: u64,
    },
    /// Takes the cost for a reservation, or refuses. A number that is in use takes nothing; the answer then has the figures.
    Reserve {
        /// Quota units: the estimate.
        cost: u64,
        /// Number of the reservation, not 0, and not that of a permit.
        reservation: u64,
        /// Time in microseconds after which slots expire that are not released before.
        ttl_us: u64,
    },
    /// Settles a reservation with its final amount; the answer has the figures after it, and what it changed.
    Settle {
        /// Number of the reservation.
        reservation: u64,
        /// Quota units that were used.
        amount: u64,
    },
    /// Extends a reservation and its slots; the answer has the figures after it.
    Extend {
        /// Number of the reservation.
        reservation: u64,
    },
    /// Refuses all takes for a time; the answer has the figures after it.
    Pause {
        /// Length in microseconds.
        length_us: u64,
    },
    /// Deletes the key; the answer has the figures after it.
    Reset,
}

/// Result of an operation on one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Verdict of the operation.
    pub verdict: VerdictKind,
    /// Time in microseconds until the same take passes; `None` unless the verdict is `Deny`.
    pub retry_after_us: Option<u64>,
    /// Used quota.
    pub count: u64,
    /// Quota that can be taken.
    pub remaining: u64,
    /// Time in microseconds until the limit is full again.
    pub reset_after_us: u64,
    /// Amount of the granted lease; 0 without one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub granted: u64,
    /// Used quota above the capacity.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub debt: u64,
    /// Amount that a settlement gave back.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub given_back: u64,
    /// Excess that a settlement did not take, because the debt would be too large.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncollected: u64,
    /// Whether an earlier settlement of the reservation counts.
    #[serde(default, skip_serializing_if = "is_false")]
    pub repeated: bool,
}

/// Verdict without `retry_after`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "self-explanatory names")]
pub enum VerdictKind {
    Allow,
    Deny,
    Never,
}

impl From<&Status<'_>> for Answer {
    fn from(status: &Status<'_>) -> Self {
        let verdict = match status.verdict() {
            Verdict::Allow => VerdictKind::Allow,
            Verdict::Deny { .. } => VerdictKind::Deny,
            Verdict::Never => VerdictKind::Never,
        };
        Self {
            verdict,
            retry_after_us: status.verdict().retry_after().map(micros),
            count: status.count(),
            remaining: status.remaining(),
            reset_after_us: micros(status.reset_after()),
            granted: 0,
            debt: status.debt(),
            given_back: 0,
            uncollected: 0,
            repeated: false,
        }
    }
}

impl Answer {
    /// Returns true if the verdict is `Allow`.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.verdict == VerdictKind::Allow
    }

    /// Converts the reply to a lease.
    #[must_use]
    pub fn from_grant(limit: &Limit, grant: &TakeGrant) -> Self {
        let answer = Self::from(&Status::new(limit, Mode::Enforce, grant.reply));
        Self { granted: grant.amount, ..answer }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

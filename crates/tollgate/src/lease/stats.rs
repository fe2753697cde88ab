//! Counters of leases.

use crate::sync::atomic::{AtomicU64, Ordering};

/// Figures of the leases of one store, for metrics. Amounts are summed over all limits of a plan.
///
/// ```
/// use tollgate::lease::{LeaseTable, LeaseTime};
///
/// let stats = LeaseTable::new(1000).stats(LeaseTime::default());
/// assert_eq!((stats.granted, stats.held), (0, 0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LeaseStats {
    /// Total amount that the store granted.
    pub granted: u64,
    /// Total amount that was spent.
    pub spent: u64,
    /// Total amount that refunds returned to leases. It can be spent again.
    pub refunded: u64,
    /// Total amount that was not spent before its lease ended.
    pub dropped: u64,
    /// Total number of leases that the store granted.
    pub grants: u64,
    /// Total number of requests for a lease that the store did not grant.
    pub not_granted: u64,
    /// Total number of decisions from leases, each without a store call.
    pub decisions: u64,
    /// Number of plans with a lease now.
    pub held: u64,
}

/// The totals of [`LeaseStats`].
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) granted: AtomicU64,
    pub(super) spent: AtomicU64,
    pub(super) refunded: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) grants: AtomicU64,
    pub(super) not_granted: AtomicU64,
    pub(super) decisions: AtomicU64,
}

impl Counters {
    pub(super) fn stats(&self, held: u64) -> LeaseStats {
        let total = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LeaseStats {
            granted: total(&self.granted),
            spent: total(&self.spent),
            refunded: total(&self.refunded),
            dropped: total(&self.dropped),
            grants: total(&self.grants),
            not_granted: total(&self.not_granted),
            decisions: total(&self.decisions),
            held,
        }
    }
}

/// Adds to a counter.
pub(super) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

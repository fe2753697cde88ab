//! The result of a simulation.

use serde::Serialize;

use super::scenario::Scenario;
use super::tally::ratio;

/// The figures of a fleet. Those without another note are of the measured time.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Figures {
    /// What was simulated.
    pub scenario: Option<Scenario>,
    /// Requests of clients in the whole simulation.
    pub all_decisions: u64,
    /// Admissions that were checked against the limit of their key, in the whole simulation.
    pub checked: u64,
    /// Admissions by the store and by leases above a limit, in the whole simulation. Must be 0.
    pub violations: u64,
    /// Admissions above a node's share of a limit while the store was lost. Must be 0.
    pub share_violations: u64,
    /// Decisions.
    pub decisions: u64,
    /// Requests that failed, because the store was overloaded.
    pub failed: u64,
    /// Where decisions were made.
    pub sources: Sources,
    /// Plans that nodes sent to the store.
    pub requests: u64,
    /// Plans sent to the store for each decision.
    pub requests_per_decision: f64,
    /// Calls to the store for each decision. A call contains one or more plans.
    pub calls_per_decision: f64,
    /// The tenth of all keys with most requests.
    pub hot_tenth: HotKeys,
    /// Keys with at least 100 requests per second on each node that receives them.
    pub busy_keys: HotKeys,
    /// All keys, by rank.
    pub by_rank: Vec<RankFigures>,
    /// Number of keys whose demand exceeded their limit at some time.
    pub exceeded_limits: u64,
    /// What an ideal store would admit of these keys.
    pub possible: u64,
    /// What was admitted of it.
    pub used: u64,
    /// The part of it that was admitted.
    pub used_part: f64,
    /// Requests for the other keys.
    pub below_limit: u64,
    /// Those that were refused.
    pub wrongly_refused: u64,
    /// Jain's index over nodes of the admitted part of the demand for the 16 hottest keys.
    pub fairness: f64,
    /// Latency of a decision: p50, p99, p99.9 and maximum, in microseconds. 0: without a call.
    pub latency_us: [u64; 4],
    /// The servers of the store.
    pub store: StoreFigures,
    /// Leases, in the whole simulation.
    pub leases: LeaseFigures,
    /// Requests to the store in each 100 ms of the whole simulation.
    pub timeline: Vec<u32>,
}

/// Decisions by source.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Sources {
    /// From a lease.
    pub lease: u64,
    /// From the refusal cache.
    pub cache: u64,
    /// By the store.
    pub store: u64,
    /// By a node alone.
    pub local: u64,
}

/// Figures of some keys.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct HotKeys {
    /// Number of keys.
    pub keys: u64,
    /// Their decisions.
    pub decisions: u64,
    /// Their requests to the store.
    pub requests: u64,
    /// Requests to the store for each decision.
    pub requests_per_decision: f64,
}

/// Figures of the keys between two ranks.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct RankFigures {
    /// First and last rank.
    pub ranks: (usize, usize),
    /// The keys.
    pub keys: HotKeys,
}

/// Figures of the servers of the store.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct StoreFigures {
    /// Busy part of the time.
    pub busy_part: f64,
    /// Mean number of requests in 10 ms.
    pub mean_requests: f64,
    /// Maximum number of requests in 10 ms.
    pub peak_requests: u32,
}

/// Totals of the lease tables.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[expect(missing_docs, reason = "the names are those of `LeaseStats`")]
pub struct LeaseFigures {
    pub granted: u64,
    pub spent: u64,
    pub dropped: u64,
    pub grants: u64,
    pub not_granted: u64,
    /// Keys with a lease at the end, on all nodes.
    pub held: u64,
}

impl Figures {
    pub(super) fn set_calls(&mut self, calls: u64) {
        self.requests_per_decision = ratio(self.requests, self.decisions);
        self.calls_per_decision = ratio(calls, self.decisions);
    }
}

impl StoreFigures {
    /// Sets the mean and the peak of the measured intervals.
    pub(super) fn set_peaks(&mut self, timeline: &[u32], first: usize) {
        let measured = timeline.get(first..).unwrap_or_default();
        let total: u64 = measured.iter().map(|count| u64::from(*count)).sum();
        self.mean_requests = ratio(total, measured.len() as u64);
        self.peak_requests = measured.iter().copied().max().unwrap_or(0);
    }
}

impl LeaseFigures {
    pub(super) fn add(&mut self, stats: tollgate::lease::LeaseStats) {
        self.granted += stats.granted;
        self.spent += stats.spent;
        self.dropped += stats.dropped;
        self.grants += stats.grants;
        self.not_granted += stats.not_granted;
    }
}

//! The fixed properties of one seed: limits, their distribution, number of nodes, network latency.

use std::sync::Arc;

use tollgate::{Distributed, Distribution, Key, Limit, OnStoreLoss, Subject};

use crate::random::Random;
use crate::spec::{Align, Kind, LimitSpec};

/// Microseconds in a second.
pub(super) const SECOND: u64 = 1_000_000;

/// Time-out of a call to the store, in microseconds.
pub(super) const TIMEOUT: u64 = 100_000;

/// Time after which a request probes the lost store, in microseconds.
pub(super) const OPEN_FOR: u64 = 30 * SECOND;

/// One key with its limit.
#[derive(Debug)]
pub(super) struct LimitedKey {
    pub(super) spec: LimitSpec,
    pub(super) limit: Limit,
    pub(super) subject: Subject,
    pub(super) distribution: Distribution,
    pub(super) refunds: Refunds,
}

/// Whether callers refund.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refunds {
    Never,
    Sometimes,
}

/// Who probes a lost store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Maintenance {
    /// A task that calls `maintain` about once a second.
    EverySecond,
    /// Requests only.
    ByRequests,
}

/// The properties drawn before the hour begins.
#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) seed: u64,
    pub(super) keys: Vec<Arc<LimitedKey>>,
    pub(super) specs: Vec<LimitSpec>,
    pub(super) nodes: u32,
    /// Number of consecutive failures that opens the breaker.
    pub(super) threshold: u32,
    pub(super) maintenance: Maintenance,
    pub(super) max_distribution: Distributed,
    /// Maximum normal latency of a reply, in microseconds.
    pub(super) round_trip: u64,
}

impl Scenario {
    pub(super) fn draw(seed: u64, random: &mut Random) -> Self {
        let count = random.within(1, 3);
        let mut has_slots = false;
        let keys: Vec<Arc<LimitedKey>> = (0..count)
            .map(|number| {
                let key = LimitedKey::draw(random, number, has_slots);
                has_slots |= key.spec.algorithm == Kind::Concurrency;
                Arc::new(key)
            })
            .collect();
        let specs = keys.iter().map(|key| key.spec.clone()).collect();
        let nodes = u32::try_from(random.magnitude(6)).unwrap_or(1);
        let threshold = u32::try_from(random.within(1, 5)).unwrap_or(5);
        let maintenance =
            if random.one_in(6) { Maintenance::ByRequests } else { Maintenance::EverySecond };
        let max_distribution = match random.within(0, 11) {
            0 => Distributed::Off,
            1 => Distributed::Shadow,
            _ => Distributed::On,
        };
        let round_trip = *random.pick(&[0, 0, 300, 5_000]).unwrap_or(&0);
        Self { seed, keys, specs, nodes, threshold, maintenance, max_distribution, round_trip }
    }

    /// Returns the index of a key; `None` for the key of the probe.
    pub(super) fn find(&self, key: &Key<'_>) -> Option<usize> {
        self.keys.iter().position(|known| known.subject.as_str() == key.subject())
    }

    /// Returns where a key is counted.
    pub(super) fn distributed(&self, key: usize) -> Distributed {
        self.keys[key].distribution.distributed.min(self.max_distribution)
    }

    /// Returns true if a key is counted in the shared store.
    pub(super) fn is_shared(&self, key: usize) -> bool {
        self.distributed(key) == Distributed::On
    }

    pub(super) fn on_store_loss(&self, key: usize) -> OnStoreLoss {
        self.keys[key].distribution.on_store_loss
    }
}

impl LimitedKey {
    fn draw(random: &mut Random, number: u64, has_slots: bool) -> Self {
        let spec = loop {
            let spec = draw_spec(random);
            if !(has_slots && spec.algorithm == Kind::Concurrency) {
                break spec;
            }
        };
        let distributed = match random.within(0, 9) {
            0 => Distributed::Off,
            1 => Distributed::Shadow,
            _ => Distributed::On,
        };
        let on_store_loss = match random.within(0, 9) {
            0 | 1 => OnStoreLoss::Allow,
            2 | 3 => OnStoreLoss::Deny,
            _ => OnStoreLoss::Local,
        };
        let limit = spec.build().expect("drawn specs are valid");
        let refunds = if random.one_in(4) { Refunds::Sometimes } else { Refunds::Never };
        let subject = Subject::of([format!("k{number}")]);
        let distribution = Distribution { distributed, on_store_loss };
        Self { spec, limit, subject, distribution, refunds }
    }

    pub(super) fn key(&self) -> Key<'_> {
        Key::new(&self.subject, &self.limit)
    }
}

/// Draws small counts, so that limits are reached. Windows divide the hour by which a clock steps, so that calendar
/// windows have the same borders on every clock.
fn draw_spec(random: &mut Random) -> LimitSpec {
    let kind = *random.pick(&Kind::ALL).unwrap_or(&Kind::TokenBucket);
    let count = random.magnitude(20);
    let window = *random.pick(&[1, 10, 60, 600]).unwrap_or(&60) * SECOND;
    match kind {
        Kind::CalendarWindow => {
            let aligns = [Align::Second, Align::Minute, Align::Minute, Align::Hour];
            LimitSpec::calendar(count, *random.pick(&aligns).unwrap_or(&Align::Minute), "UTC")
        }
        Kind::TokenBucket if random.one_in(2) => {
            LimitSpec::new(kind, count, window).with_burst(random.magnitude(20))
        }
        Kind::TokenBucket
        | Kind::SlidingWindow
        | Kind::SlidingCounter
        | Kind::FixedWindow
        | Kind::Concurrency => LimitSpec::new(kind, count, window),
    }
}

/// Returns one node's share of a limit.
pub(super) fn share(spec: &LimitSpec, nodes: u32) -> LimitSpec {
    let divide = |total: u64| total.div_ceil(u64::from(nodes));
    LimitSpec { count: divide(spec.count), burst: spec.burst.map(divide), ..spec.clone() }
}

/// Returns the time without takes after which a key is full, in microseconds.
pub(super) fn refill(spec: &LimitSpec) -> u64 {
    match spec.algorithm {
        Kind::TokenBucket => (spec.capacity() * spec.window_us).div_ceil(spec.count),
        Kind::SlidingCounter => 2 * spec.window_us,
        Kind::SlidingWindow | Kind::FixedWindow | Kind::Concurrency => spec.window_us,
        Kind::CalendarWindow => match spec.align {
            Some(Align::Second) => SECOND,
            Some(Align::Minute) => 60 * SECOND,
            _ => 3600 * SECOND,
        },
    }
}

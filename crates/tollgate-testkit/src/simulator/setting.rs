//! What one seed is about: the limits, how they are shared, the nodes, and how fast the network is.

use std::sync::Arc;

use tollgate::{Distributed, Distribution, Key, Limit, OnStoreLoss, Subject};

use crate::random::Random;
use crate::spec::{Align, Kind, LimitSpec};

pub(super) const SECOND: u64 = 1_000_000;

/// How long a node waits for an answer.
pub(super) const TIMEOUT: u64 = 100_000;

/// After how long without being asked a request tries the store.
pub(super) const OPEN_FOR: u64 = 30 * SECOND;

/// A key: whose, of which limit, and how nodes share it.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) spec: LimitSpec,
    pub(super) limit: Limit,
    pub(super) subject: Subject,
    pub(super) distribution: Distribution,
    pub(super) refunds: Refunds,
}

/// Whether callers give back. Then no bound on what passes in a window is simple, and only the oracle judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refunds {
    Never,
    Sometimes,
}

/// Whether anybody looks after the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attendance {
    /// About once a second.
    EachSecond,
    /// Nobody: requests do.
    ByRequests,
}

/// What a seed draws before anything happens.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) seed: u64,
    pub(super) keys: Vec<Arc<Counted>>,
    pub(super) specs: Vec<LimitSpec>,
    pub(super) nodes: u32,
    pub(super) threshold: u32,
    pub(super) attendance: Attendance,
    pub(super) at_most: Distributed,
    /// How long an answer takes at most, on a good day.
    pub(super) round_trip: u64,
}

impl Setting {
    pub(super) fn draw(seed: u64, random: &mut Random) -> Self {
        let count = random.within(1, 3);
        let mut has_slots = false;
        let keys: Vec<Arc<Counted>> = (0..count)
            .map(|number| {
                let key = Counted::draw(random, number, has_slots);
                has_slots |= key.spec.algorithm == Kind::Concurrency;
                Arc::new(key)
            })
            .collect();
        let specs = keys.iter().map(|key| key.spec.clone()).collect();
        let nodes = u32::try_from(random.magnitude(6)).unwrap_or(1);
        let threshold = u32::try_from(random.within(1, 5)).unwrap_or(5);
        let attendance =
            if random.one_in(6) { Attendance::ByRequests } else { Attendance::EachSecond };
        let at_most = match random.within(0, 11) {
            0 => Distributed::Off,
            1 => Distributed::Shadow,
            _ => Distributed::On,
        };
        let round_trip = *random.pick(&[0, 0, 300, 5_000]).unwrap_or(&0);
        Self { seed, keys, specs, nodes, threshold, attendance, at_most, round_trip }
    }

    /// Which of the keys this is; none for the probe's.
    pub(super) fn find(&self, key: &Key<'_>) -> Option<usize> {
        self.keys.iter().position(|known| known.subject.as_str() == key.subject())
    }

    /// How much the store has to say of a key.
    pub(super) fn reach(&self, key: usize) -> Distributed {
        self.keys[key].distribution.distributed.min(self.at_most)
    }
}

impl Counted {
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
        let limit = spec.build().expect("drawn to be valid");
        let refunds = if random.one_in(4) { Refunds::Sometimes } else { Refunds::Never };
        let subject = Subject::of([format!("k{number}")]);
        let distribution = Distribution { distributed, on_store_loss };
        Self { spec, limit, subject, distribution, refunds }
    }

    pub(super) fn key(&self) -> Key<'_> {
        Key::new(&self.subject, &self.limit)
    }
}

/// Small numbers, so that they are reached. Windows divide the hour by which a clock steps, so that windows of
/// the calendar lie alike on every clock.
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
        _ => LimitSpec::new(kind, count, window),
    }
}

/// One node's part, as the oracle reads it.
pub(super) fn share(spec: &LimitSpec, nodes: u32) -> LimitSpec {
    let part = |whole: u64| whole.div_ceil(u64::from(nodes));
    LimitSpec { count: part(spec.count), burst: spec.burst.map(part), ..spec.clone() }
}

/// After how long without a take a key is as if never seen.
pub(super) fn refill(spec: &LimitSpec) -> u64 {
    match (spec.algorithm, spec.align) {
        (Kind::TokenBucket, _) => (spec.capacity() * spec.window_us).div_ceil(spec.count),
        (Kind::SlidingCounter, _) => 2 * spec.window_us,
        (_, Some(Align::Second)) => SECOND,
        (_, Some(Align::Minute)) => 60 * SECOND,
        (_, Some(_)) => 3600 * SECOND,
        (_, None) => spec.window_us,
    }
}

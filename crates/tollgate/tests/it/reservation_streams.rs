//! Streams that reserve more than they use: they never use more than the limit together, and they use most of it.
//!
//! `TOLLGATE_STREAM_RUNS=1000 cargo test --release -p tollgate --test it reservation_streams` runs a thousand times a
//! thousand concurrent streams.

use std::collections::BTreeMap;
use std::future::IntoFuture;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{env, thread};

use tollgate::reservation::{FinalCosts, ReservationToken};
use tollgate::{
    Algorithm, Clock, Costs, Inline, Limit, Limiter, ManualClock, MemoryStore, Policy, Query,
    Quota, Unit,
};
use tollgate_testkit::random::Random;
use tollgate_testkit::runtime::block_on;

const STREAMS: u64 = 1_000;
const THREADS: u64 = 4;
const TOKENS: u64 = 20_000;

fn tokens(limit: Limit) -> Limit {
    limit.in_unit(Unit::new("tokens").unwrap()).unwrap()
}

fn quotas(quota: impl Fn() -> Quota) -> [Limit; 4] {
    [
        Limit::token_bucket(quota()),
        Limit::sliding_window(quota()),
        Limit::sliding_counter(quota()),
        Limit::fixed_window(quota()),
    ]
    .map(|limit| tokens(limit.unwrap()))
}

fn query(limits: &[Limit], amount: u64) -> Query<'static> {
    let inline = Inline::new("", "k", limits.to_vec(), 1).unwrap();
    Query::from(inline.with_costs(Costs::requests(1).and("tokens", amount).unwrap()))
}

/// A stream whose reservation is open.
struct Stream {
    token: ReservationToken,
    estimate: u64,
    amount: u64,
}

/// The streams of one run.
struct Run {
    limiter: Limiter<MemoryStore>,
    limits: [Limit; 2],
    /// What all streams have reserved or used, never more than the store has charged.
    charged: AtomicU64,
}

impl Run {
    fn of(tokens: &Limit) -> Self {
        let slots = Limit::concurrency(100, Duration::from_secs(3_600)).unwrap();
        let limiter = Limiter::new(MemoryStore::new(), Policy::builtin());
        Self { limiter, limits: [tokens.clone(), slots], charged: AtomicU64::new(0) }
    }

    /// One thread of streams. Returns what they used.
    fn run_streams(&self, seed: u64) -> u64 {
        let mut random = Random::new(seed);
        let (mut open, mut used): (Vec<Stream>, u64) = (Vec::new(), 0);
        for _ in 0..STREAMS / THREADS {
            let estimate = random.within(1, 200);
            let call = self.limiter.reserve(query(&self.limits, estimate));
            if let Ok(reservation) = block_on(call.into_future()) {
                let charged = self.charged.fetch_add(estimate, Ordering::SeqCst) + estimate;
                assert!(charged <= TOKENS, "{}: {charged} charged", self.limits[0]);
                let (token, amount) = (reservation.detach(), random.within(0, estimate));
                open.push(Stream { token, estimate, amount });
            }
            // Some streams end while others begin.
            if random.one_in(3) && !open.is_empty() {
                let index = usize::try_from(random.within(0, open.len() as u64 - 1)).unwrap();
                used += self.settle(&open.swap_remove(index));
            }
        }
        used + open.iter().map(|stream| self.settle(stream)).sum::<u64>()
    }

    fn settle(&self, stream: &Stream) -> u64 {
        self.charged.fetch_sub(stream.estimate - stream.amount, Ordering::SeqCst);
        let finals = FinalCosts::of(Costs::of([("tokens", stream.amount)]).unwrap());
        let settled = block_on(self.limiter.settle(&stream.token, None, &finals)).unwrap().unwrap();
        let unit = settled.units.iter().find(|unit| unit.unit.as_str() == "tokens").unwrap();
        assert_eq!((unit.charged, unit.uncollected), (stream.amount, 0));
        stream.amount
    }
}

#[test]
fn streams_within_their_reservations_never_use_more_than_the_limit() {
    let runs =
        env::var("TOLLGATE_STREAM_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    let century = || Quota::new(TOKENS, Duration::from_secs(36_525 * 86_400));
    let limits = quotas(century);
    let mut highest = 0;
    for run in 0..runs {
        let tokens = &limits[usize::try_from(run % 4).unwrap()];
        let streams = Run::of(tokens);
        let used: u64 = thread::scope(|scope| {
            let streams = |thread| {
                let streams = &streams;
                scope.spawn(move || streams.run_streams(run * THREADS + thread))
            };
            let threads: Vec<_> = (0..THREADS).map(streams).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert!(used <= TOKENS, "{tokens}: {used}");
        highest = highest.max(used);
        assert_remaining(&streams, TOKENS - used);
    }
    println!("{runs} runs of {STREAMS} streams: at most {highest} of {TOKENS} tokens used");
}

/// A century refills nothing; all slots are free again. A settlement of a token bucket gives back less than a token too
/// little: what could have refilled since the take.
fn assert_remaining(run: &Run, expected: u64) {
    let left = block_on(run.limiter.peek(query(&run.limits, 1)).into_future()).unwrap();
    let statuses: Vec<u64> = left.statuses().map(|status| status.remaining()).collect();
    let tokens = &run.limits[0];
    let rounding = u64::from(tokens.algorithm() == Algorithm::TokenBucket);
    let least = expected.saturating_sub(rounding);
    assert!((least..=expected).contains(&statuses[0]), "{tokens}: {statuses:?}, not {expected}");
    assert_eq!(statuses[1], 100, "{tokens}");
}

/// Runs ten minutes of demand above the limit: estimates four times too high, settled within two seconds. Returns the share
/// of the limit that was used.
fn used_share(limit: &Limit) -> f64 {
    let (seconds, actual, estimate) = (600, 250, 1_000);
    let clock = ManualClock::new();
    let start = clock.now();
    let store = MemoryStore::builder().clock(clock.clone()).build();
    let limiter = Limiter::new(store, Policy::builtin());
    let mut random = Random::new(7);
    // By the time of its end, and by a number.
    let mut ends: BTreeMap<(u64, u64), ReservationToken> = BTreeMap::new();
    let mut used = 0;
    for millis in (0..seconds * 1_000).step_by(20) {
        while let Some(ended) = ends.first_entry().filter(|ended| ended.key().0 <= millis) {
            let token = ended.remove();
            let finals = FinalCosts::of(Costs::of([("tokens", actual)]).unwrap());
            let _ = block_on(limiter.settle(&token, None, &finals)).unwrap().unwrap();
        }
        let call = limiter.reserve(query(std::slice::from_ref(limit), estimate));
        if let Ok(reservation) = block_on(call.into_future()) {
            ends.insert((millis + random.within(100, 2_000), millis), reservation.detach());
            used += actual;
        }
        clock.set(start + Duration::from_millis(millis + 20));
    }
    let budget = limit.count() * seconds / 60;
    f64::from(u32::try_from(used).unwrap()) / f64::from(u32::try_from(budget).unwrap())
}

#[test]
fn most_of_a_budget_is_used_although_estimates_are_four_times_too_high() {
    for limit in quotas(|| Quota::per_minute(60_000)) {
        let share = used_share(&limit);
        println!("{}: {:.1} % used", limit.algorithm(), share * 100.0);
        assert!(share >= 0.9, "{limit}: {share}");
        assert!(share <= 1.11, "{limit}: {share} is more than the limit and one burst");
    }
}

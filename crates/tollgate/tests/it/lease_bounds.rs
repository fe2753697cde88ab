//! Leases keep the bound of each algorithm, whenever within their time they are spent.
//!
//! Nodes that want to exceed the limit lease, wait, spend at the last moment and take what is left. They ask the store
//! directly, without a `LeaseTable`, which would end leases a little earlier. `TOLLGATE_HISTORIES` sets the number of
//! histories per algorithm.

use std::num::NonZeroU32;
use std::time::Duration;

use tollgate::lease::{LeaseReply, WantedLease};
use tollgate::{
    Key, LeaseSize, Limit, ManualClock, MemoryStore, Plan, Quota, Subject, Take, Timestamp,
};
use tollgate_testkit::admission_bound::AdmissionBound;
use tollgate_testkit::random::Random;
use tollgate_testkit::spec::{Align, Kind, LimitSpec};

const HISTORIES: u64 = 300;
const STEPS: usize = 150;

/// The leases and takes of all nodes, on one key.
struct Adversary {
    random: Random,
    clock: ManualClock,
    store: MemoryStore<ManualClock>,
    limit: Limit,
    hold: u64,
    now: u64,
    leases: Vec<Lease>,
    bound: AdmissionBound,
}

/// What a node still has of a lease, and the last time at which it may spend it.
struct Lease {
    left: u64,
    last: u64,
}

impl Adversary {
    fn new(seed: u64, kind: Kind) -> Self {
        let mut random = Random::new(seed);
        let limit = draw_limit(&mut random, kind);
        let hold = micros(limit.lease_hold().unwrap());
        let now = random.within(0, 1) * 1_794_765_516_667_233;
        let clock = ManualClock::at(Timestamp::from_micros(now));
        let store = MemoryStore::builder().max_keys(16).clock(clock.clone()).build();
        let bound = AdmissionBound::new(&limit);
        Self { random, clock, store, limit, hold, now, leases: Vec::new(), bound }
    }

    fn run(&mut self) -> Result<(), String> {
        for _ in 0..STEPS {
            match self.random.within(0, 9) {
                0..=3 => self.lease()?,
                4 => self.take(1)?,
                5 => self.take_all()?,
                6 => self.spend_some()?,
                7 => self.advance(),
                // At the last moment of a lease, spend it, and take what has refilled meanwhile.
                _ => {
                    self.advance_to_an_end();
                    while self.spend_all()? {}
                    self.take_all()?;
                }
            }
        }
        Ok(())
    }

    fn lease(&mut self) -> Result<(), String> {
        let cost = self.random.within(0, 1);
        let wanted = self.random.magnitude(self.limit.capacity());
        let hold = if self.random.one_in(4) { self.random.magnitude(self.hold) } else { self.hold };
        let wanted = WantedLease::new([(cost, wanted)], Duration::from_micros(hold));
        let subject = Subject::of(["hot"]);
        let plan = Plan::new([Take::new(Key::new(&subject, &self.limit), 1)]).unwrap();
        let reply = self.store.lease(&plan, &wanted).unwrap();
        let [grant] = reply.takes() else { panic!("one take") };
        if grant.reply.is_allowed() && (grant.amount > 0 || cost > 0) {
            self.bound.debited(self.now);
            self.bound.admit(self.now, cost)?;
        }
        if reply.is_granted() {
            let last = self.last_time(&reply, hold);
            self.leases.push(Lease { left: grant.amount - cost, last });
        }
        Ok(())
    }

    /// Returns the last time at which a lease may be spent.
    fn last_time(&self, reply: &LeaseReply, hold: u64) -> u64 {
        let reset = micros(reply.takes()[0].reply.reset_after());
        let window_end = match self.limit.algorithm() {
            tollgate::Algorithm::FixedWindow => self.now + reset,
            tollgate::Algorithm::SlidingCounter => self.now + reset - micros(self.limit.window()),
            _ => u64::MAX,
        };
        (self.now + hold).min(window_end - 1)
    }

    fn take(&mut self, cost: u64) -> Result<(), String> {
        let subject = Subject::of(["hot"]);
        let plan = Plan::new([Take::new(Key::new(&subject, &self.limit), cost)]).unwrap();
        if cost > 0 && self.store.take(&plan).is_allowed() {
            self.bound.debited(self.now);
            self.bound.admit(self.now, cost)?;
        }
        Ok(())
    }

    fn take_all(&mut self) -> Result<(), String> {
        let subject = Subject::of(["hot"]);
        let remaining = self.store.stats(&Key::new(&subject, &self.limit)).remaining();
        self.take(remaining)
    }

    fn spend_some(&mut self) -> Result<(), String> {
        let Some(lease) = self.leases.last_mut().filter(|lease| lease.left > 0) else {
            return Ok(());
        };
        let cost = self.random.magnitude(lease.left);
        lease.left -= cost;
        self.bound.admit(self.now, cost)
    }

    /// Spends one lease. Returns whether there was one.
    fn spend_all(&mut self) -> Result<bool, String> {
        let Some(lease) = self.leases.pop() else { return Ok(false) };
        self.bound.admit(self.now, lease.left)?;
        Ok(true)
    }

    fn advance(&mut self) {
        let refill = micros(self.limit.window());
        let left = refill - self.now % refill;
        let by = match self.random.within(0, 5) {
            0 => 1,
            1 => self.random.magnitude(self.hold),
            2 => self.random.magnitude(refill / 10),
            3 => self.random.magnitude(refill),
            4 => left,
            // Shortly before a window ends.
            _ => left - self.random.magnitude(self.hold).min(left),
        };
        self.move_to(self.now + by);
    }

    fn advance_to_an_end(&mut self) {
        let ends: Vec<u64> = self.leases.iter().map(|lease| lease.last).collect();
        if let Some(end) = self.random.pick(&ends) {
            self.move_to(*end);
        }
    }

    fn move_to(&mut self, now: u64) {
        self.now = now;
        self.clock.set(Timestamp::from_micros(now));
        self.leases.retain(|lease| lease.last >= now);
    }
}

fn draw_limit(random: &mut Random, kind: Kind) -> Limit {
    loop {
        let count = random.within(16, 400);
        let window = *random.pick(&[2, 10, 60]).unwrap() * 1_000_000;
        let spec = match kind {
            Kind::CalendarWindow => {
                let align = if random.one_in(2) { Align::Second } else { Align::Minute };
                LimitSpec::calendar(count, align, "UTC")
            }
            Kind::TokenBucket if random.one_in(2) => {
                LimitSpec::new(kind, count, window).with_burst(random.within(16, 2000))
            }
            _ => LimitSpec::new(kind, count, window),
        };
        let limit = spec.build().unwrap().with_lease(LeaseSize::Auto);
        if limit.lease_hold().is_some() {
            return limit;
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap()
}

fn check(kind: Kind) {
    let histories = std::env::var("TOLLGATE_HISTORIES").ok().and_then(|text| text.parse().ok());
    for seed in 0..histories.unwrap_or(HISTORIES) {
        let mut adversary = Adversary::new(seed, kind);
        if let Err(reason) = adversary.run() {
            panic!("seed {seed}: {reason} under {:?}", adversary.limit);
        }
    }
}

#[test]
fn leases_of_a_token_bucket_keep_burst_and_rate() {
    check(Kind::TokenBucket);
}

#[test]
fn leases_of_a_sliding_window_keep_the_count_in_any_window() {
    check(Kind::SlidingWindow);
}

#[test]
fn leases_of_a_sliding_counter_keep_its_estimate() {
    check(Kind::SlidingCounter);
}

#[test]
fn leases_of_a_fixed_window_keep_the_count_per_window() {
    check(Kind::FixedWindow);
}

#[test]
fn leases_of_a_calendar_window_keep_the_count_per_window() {
    check(Kind::CalendarWindow);
}

/// A lease needs the whole burst less what refills, so that a bucket of one second of refill is leased for an eighth.
#[test]
fn a_fixed_size_is_leased_if_it_fits_beside_the_refill() {
    let size = LeaseSize::Fixed(NonZeroU32::new(50).unwrap());
    let limit = Limit::token_bucket(Quota::per_second(100)).unwrap().with_lease(size);
    let store = MemoryStore::builder().clock(ManualClock::new()).build();
    let subject = Subject::of(["hot"]);
    let plan = Plan::new([Take::new(Key::new(&subject, &limit), 1)]).unwrap();
    let hold = limit.lease_hold().unwrap();
    let reply = store.lease(&plan, &WantedLease::new([(1, 50)], hold)).unwrap();
    // A quarter of 100 - 12.5, and the refill of the time of the lease is debited as well.
    assert_eq!(reply.takes()[0].amount, 21);
    assert_eq!(reply.takes()[0].reply.remaining(), 100 - 21 - 13);
    assert_eq!(store.lease(&plan, &WantedLease::new([(1, 50)], hold * 2)), None);
}

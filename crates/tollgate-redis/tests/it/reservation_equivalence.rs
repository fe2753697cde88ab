//! Reservations have the same results in memory and in Redis, in every field, under limits whose numbers change.
//!
//! `TOLLGATE_RESERVATIONS=100000 cargo test --release -p tollgate-redis --all-features --test redis_store
//! reservation_equivalence` compares that many steps per algorithm. A difference shows its seed and its steps.

use std::env;
use std::time::Duration;

use smallvec::SmallVec;
use tollgate::algorithm::{CalendarUnit, Reply};
use tollgate::reservation::{Draft, FinalCosts, Record, ReservationToken, Reserved};
use tollgate::{
    Costs, Key, Limit, ManualClock, MemoryStore, PermitId, Plan, Quota, Store, Subject, Take,
    Timestamp,
};
use tollgate_redis::{RedisStore, Scripting};
use tollgate_testkit::random::Random;
use tollgate_testkit::server::Flavor;

use crate::fixture::{block_on, builder, shared};

/// Steps per algorithm. `TOLLGATE_RESERVATIONS` sets another number.
const STEPS: u64 = 3_000;
const STEPS_PER_HISTORY: u64 = 60;

struct Stores {
    clock: ManualClock,
    memory: MemoryStore<ManualClock>,
    redis: RedisStore,
}

/// What a caller sees of one step.
#[derive(Debug, PartialEq)]
enum Seen {
    Decision(Vec<Reply>, bool),
    Known(u64),
    Settled(bool, Vec<[u64; 3]>, Vec<Reply>),
    Renewed(Option<Timestamp>),
    Unknown,
}

#[derive(Debug, Clone)]
enum Step {
    Check {
        key: usize,
        numbers: usize,
        cost: u64,
    },
    Reserve {
        key: usize,
        numbers: usize,
        cost: u64,
        ttl: Duration,
        token: ReservationToken,
        permit: u128,
    },
    Settle {
        token: ReservationToken,
        finals: FinalCosts,
    },
    Renew {
        token: ReservationToken,
    },
    Pause {
        key: usize,
        length: Duration,
    },
}

/// The limits of a history: each with two sets of numbers, which one subject may have in turn.
struct World {
    subjects: Vec<Subject>,
    limits: [Vec<Limit>; 2],
}

fn limit_of(kind: usize, random: &mut Random) -> Limit {
    let count = random.within(1, 60);
    let window = Duration::from_micros(random.within(1, 40) * 250_000);
    let quota = Quota::try_new(count, window).unwrap();
    let limit = match kind {
        0 => Limit::token_bucket(quota.try_burst(random.within(1, 60)).unwrap()),
        1 => Limit::sliding_window(quota),
        2 => Limit::sliding_counter(quota),
        3 => Limit::fixed_window(quota),
        4 => Limit::calendar_window(count, CalendarUnit::Second, "UTC"),
        _ => Limit::concurrency(random.within(1, 4), window),
    };
    limit.unwrap()
}

impl World {
    fn draw(kind: usize, seed: u64, random: &mut Random) -> Self {
        let subjects =
            (0..2).map(|number| Subject::of([format!("{kind}-{seed}-{number}")])).collect();
        // Mixed plans have slots and several algorithms.
        let kinds: Vec<usize> = if kind < 5 { vec![kind] } else { (0..6).collect() };
        let limits = [0, 1].map(|_| {
            let named = |(number, kind): (usize, &usize)| {
                limit_of(*kind, random).named(&format!("l{number}")).unwrap()
            };
            kinds.iter().enumerate().map(named).collect()
        });
        Self { subjects, limits }
    }

    fn plan(&self, key: usize, numbers: usize, cost: u64) -> Plan<'_> {
        let subject = &self.subjects[key];
        let takes = self.limits[numbers].iter().map(|limit| {
            let cost = if limit.ttl().is_some() { cost.min(1) } else { cost };
            Take::new(Key::new(subject, limit), cost)
        });
        Plan::new(takes).unwrap()
    }

    async fn run(&self, store: &impl Store, step: &Step) -> Seen {
        match step {
            Step::Check { key, numbers, cost } => {
                let decision = store.take(&self.plan(*key, *numbers, *cost)).await.unwrap();
                seen_decision(&decision)
            }
            Step::Reserve { key, numbers, cost, ttl, token, permit } => {
                let plan = self.plan(*key, *numbers, *cost);
                let plan = plan.with_permit(PermitId::from_u128(*permit).unwrap());
                let draft = Draft {
                    token: *token,
                    tenant: Box::default(),
                    ttl: *ttl,
                    costs: Costs::requests(*cost),
                    factors: SmallVec::new(),
                };
                match store.reserve(&plan, &draft).await.unwrap() {
                    Reserved::Decided(decision, record) => {
                        assert_eq!(record.is_some(), decision.is_allowed());
                        assert!(record.is_none_or(
                            |record: Record| record.takes().len() == plan.takes().len()
                        ));
                        seen_decision(&decision)
                    }
                    Reserved::Known(record) => Seen::Known(record.taken_at().as_micros()),
                }
            }
            Step::Settle { token, finals } => {
                match store.settle(token, None, finals).await.unwrap() {
                    None => Seen::Unknown,
                    Some(settled) => Seen::Settled(
                        settled.is_repeated,
                        settled
                            .units
                            .iter()
                            .map(|unit| [unit.charged, unit.refunded, unit.uncollected])
                            .collect(),
                        settled.limits.iter().map(|limit| limit.reply).collect(),
                    ),
                }
            }
            Step::Renew { token } => {
                Seen::Renewed(store.renew_reservation(token, None).await.unwrap())
            }
            Step::Pause { key, length } => {
                for limit in &self.limits[0] {
                    store.pause(&Key::new(&self.subjects[*key], limit), *length).await.unwrap();
                }
                Seen::Unknown
            }
        }
    }

    /// Only tokens whose reservation has not expired are used: expired records end on different clocks.
    fn next_step(
        &self,
        tokens: &mut Vec<(ReservationToken, Timestamp)>,
        now: Timestamp,
        random: &mut Random,
    ) -> Step {
        tokens.retain(|(_, until)| *until > now);
        let (key, numbers) = (pick(random, 2), if random.one_in(6) { 1 } else { 0 });
        let cost = random.within(0, 40);
        match random.within(0, 9) {
            0..=2 => Step::Check { key, numbers, cost },
            3..=5 => {
                let is_known = !tokens.is_empty() && random.one_in(8);
                let token = match is_known {
                    true => tokens[pick(random, tokens.len())].0,
                    false => ReservationToken::random(),
                };
                // The first reservation with this token may have been refused: this one must not end before it.
                let ttl = if is_known { 9_000 } else { random.within(1, 9_000) };
                let ttl = Duration::from_millis(ttl);
                if !is_known {
                    tokens.push((token, now + ttl));
                }
                let permit = u128::from(random.within(1, u64::MAX - 1));
                Step::Reserve { key, numbers, cost, ttl, token, permit }
            }
            6..=8 if !tokens.is_empty() => {
                let (token, _) = tokens[pick(random, tokens.len())];
                if random.one_in(5) {
                    return Step::Renew { token };
                }
                let used = Costs::requests(random.within(0, 90));
                let finals =
                    if random.one_in(4) { FinalCosts::cancelled() } else { FinalCosts::of(used) };
                Step::Settle { token, finals }
            }
            _ if random.one_in(6) => {
                Step::Pause { key, length: Duration::from_millis(random.within(1, 3_000)) }
            }
            _ => Step::Check { key, numbers, cost },
        }
    }
}

fn pick(random: &mut Random, count: usize) -> usize {
    usize::try_from(random.within(0, count as u64 - 1)).unwrap()
}

fn seen_decision(decision: &tollgate::Decision<'_>) -> Seen {
    let replies = decision.statuses().iter().map(|status| {
        Reply::new(status.verdict(), status.remaining(), status.reset_after())
            .with_debt(status.debt())
    });
    Seen::Decision(replies.collect(), decision.is_allowed())
}

async fn compare(stores: &Stores, kind: usize, seed: u64) {
    let mut random = Random::new(seed);
    let world = World::draw(kind, seed, &mut random);
    let (mut tokens, mut history) = (Vec::new(), Vec::new());
    for _ in 0..STEPS_PER_HISTORY {
        if !random.one_in(3) {
            stores.clock.advance(Duration::from_micros(random.within(1, 900_000)));
        }
        let now = tollgate::Clock::now(&stores.clock);
        let step = world.next_step(&mut tokens, now, &mut random);
        history.push(format!("{:?} {step:?}", tollgate::Clock::now(&stores.clock)));
        let in_memory = world.run(&stores.memory, &step).await;
        let in_redis = world.run(&stores.redis, &step).await;
        assert!(
            in_memory == in_redis,
            "kind {kind}, seed {seed}\nmemory {in_memory:#?}\nredis {in_redis:#?}\nlimits {:#?}\nsteps:\n{}",
            world.limits,
            history.join("\n")
        );
    }
}

fn compare_kind(kind: usize, flavor: Flavor, scripting: Scripting) {
    let steps =
        env::var("TOLLGATE_RESERVATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(STEPS);
    let clock = ManualClock::new();
    clock.set(Timestamp::from_micros(1_700_000_000_000_000));
    let redis = builder(shared(flavor)).clock(clock.clone()).scripting(scripting).build();
    let memory = MemoryStore::builder().clock(clock.clone()).build();
    let stores = Stores { clock, memory, redis };
    block_on(async {
        for seed in 0..steps / STEPS_PER_HISTORY {
            compare(&stores, kind, seed).await;
        }
    });
}

#[test]
fn token_buckets() {
    compare_kind(0, Flavor::Redis, Scripting::Script);
}

#[test]
fn sliding_windows() {
    compare_kind(1, Flavor::Redis, Scripting::Script);
}

#[test]
fn sliding_counters() {
    compare_kind(2, Flavor::Redis, Scripting::Script);
}

#[test]
fn fixed_windows() {
    compare_kind(3, Flavor::Redis, Scripting::Script);
}

#[test]
fn calendar_windows() {
    compare_kind(4, Flavor::Redis, Scripting::Script);
}

#[test]
fn mixed_plans_with_slots() {
    compare_kind(5, Flavor::Redis, Scripting::Script);
}

#[test]
fn mixed_plans_by_functions_on_valkey() {
    compare_kind(5, Flavor::Valkey, Scripting::Function);
}

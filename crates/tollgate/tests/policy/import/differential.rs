//! Random configurations and descriptors: the imported policy and the model of the original decide alike.
//!
//! `TOLLGATE_DECISIONS` sets the number of decisions for each format; `TOLLGATE_SEED` replays one configuration.

use std::time::Duration;

use tollgate::policy::{self, ImportFormat, ImportedPolicy, PolicyError};
use tollgate::{
    Clock as _, Facts, Limiter, ManualClock, MemoryStore, Policy, Query, Request, Timestamp, Verb,
};
use tollgate_testkit::random::Random;
use tollgate_testkit::runtime::block_on;

use super::{Outcome, envoy_model, import, limitador_model};
use crate::helpers::default_limit;

/// Default number of decisions for each format.
const DECISIONS: u64 = 30_000;
/// The number of decisions by one configuration.
const PER_CONFIGURATION: u64 = 150;
/// The number of different descriptors sent to one configuration.
const DESCRIPTORS: u64 = 25;
/// 2026-10-31T23:59:50Z: ten seconds before the end of a minute, hour, day and month.
const START: u64 = 1_793_491_190_000_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|number| number.parse().ok())
}

/// How often each kind of outcome occurred.
#[derive(Debug, Default)]
struct Figures {
    no_limit: u64,
    unlimited: u64,
    allowed: u64,
    refused: u64,
}

impl Figures {
    fn add(&mut self, outcome: Outcome) {
        *match outcome {
            Outcome::NoLimit => &mut self.no_limit,
            Outcome::Unlimited => &mut self.unlimited,
            Outcome::Limited { is_allowed: true, .. } => &mut self.allowed,
            Outcome::Limited { is_allowed: false, .. } => &mut self.refused,
        } += 1;
    }
}

/// An imported policy on a clock of its own.
struct Imported {
    limiter: Limiter<MemoryStore<ManualClock>>,
    clock: ManualClock,
    yaml: String,
}

impl Imported {
    fn new(imported: ImportedPolicy) -> Self {
        let policy = Policy::from_yaml("policy.yaml", &imported.yaml, default_limit());
        let policy = policy.unwrap_or_else(|error| panic!("{error}\n{}", imported.yaml));
        let clock = ManualClock::at(Timestamp::from_micros(START));
        let store = MemoryStore::builder().clock(clock.clone()).build();
        Self { limiter: Limiter::new(store, policy), clock, yaml: imported.yaml }
    }

    fn decide(&self, facts: Facts<'static>, cost: u64) -> Outcome {
        let query = Query::from(Request::new(facts).with_cost(cost)).without_default_limit();
        let outcome = self.limiter.decide(Verb::Take, &query, |outcome| {
            let Some(matched) = outcome.query.matched().first() else { return Outcome::NoLimit };
            if matched.rule().is_unlimited() {
                return Outcome::Unlimited;
            }
            let statuses = outcome.decision.statuses().iter();
            let figures = statuses.map(|status| (status.remaining(), status.limit().count()));
            let (remaining, limit) = figures.min().unwrap();
            Outcome::Limited { is_allowed: outcome.decision.is_allowed(), limit, remaining }
        });
        block_on(outcome).unwrap()
    }

    /// Advances the clock: mostly not, sometimes to the next of several units.
    fn advance(&self, random: &mut Random) {
        let seconds =
            *random.pick(&[1, 1, 9, 10, 60, 3600, 86_400, 7 * 86_400, 31 * 86_400]).unwrap();
        match random.within(0, 9) {
            0 => self.clock.advance(Duration::from_secs(seconds)),
            1 => self.clock.advance(Duration::from_millis(random.within(1, 2000))),
            _ => {}
        }
    }

    fn now(&self) -> u64 {
        self.clock.now().as_micros()
    }
}

/// Runs configurations until there were enough decisions, or the one of `TOLLGATE_SEED`.
fn run(configuration: impl Fn(u64, &mut Figures)) -> Figures {
    let mut figures = Figures::default();
    if let Some(seed) = number("TOLLGATE_SEED") {
        configuration(seed, &mut figures);
        return figures;
    }
    let decisions = number("TOLLGATE_DECISIONS").unwrap_or(DECISIONS);
    for seed in 0..decisions.div_ceil(PER_CONFIGURATION) {
        configuration(seed, &mut figures);
    }
    println!("{figures:?}");
    let Figures { no_limit, unlimited: _, allowed, refused } = figures;
    assert!(no_limit * 20 > decisions && allowed * 20 > decisions && refused * 20 > decisions);
    figures
}

fn entries<'e>(
    random: &mut Random,
    keys: &'e [&'e str],
    values: &'e [&'e str],
) -> Vec<(&'e str, &'e str)> {
    let count = random.within(1, 4);
    (0..count).map(|_| (*random.pick(keys).unwrap(), *random.pick(values).unwrap())).collect()
}

fn import_domains(domains: &[envoy_model::Domain]) -> Result<ImportedPolicy, PolicyError> {
    let texts: Vec<_> = domains.iter().map(envoy_model::Domain::yaml).collect();
    let names = ["0.yaml", "1.yaml", "2.yaml"];
    let files: Vec<_> = names.into_iter().zip(texts.iter().map(String::as_str)).collect();
    policy::import(ImportFormat::Envoy, &files)
}

#[test]
fn envoy_policies_decide_like_the_original() {
    let figures = run(|seed, figures| {
        let random = &mut Random::new(seed);
        let mut domains =
            ["edge", "mail*", "a/b"].map(|name| envoy_model::Domain::random(name, random));
        let imported = import_domains(&domains).unwrap_or_else(|error| {
            // Keys that occur twice cannot be counted beside share_threshold.
            assert!(error.to_string().contains("beside share_threshold"), "{error}");
            domains.iter_mut().for_each(envoy_model::Domain::remove_sharing);
            import_domains(&domains).unwrap()
        });
        assert_eq!(imported.warnings, [""; 0]);
        let (imported, mut model) = (Imported::new(imported), envoy_model::Model::default());
        // Descriptors repeat, so that their limits are reached.
        let descriptors: Vec<_> = (0..DESCRIPTORS)
            .map(|_| {
                let domain = random.pick(&domains).unwrap();
                let name = if random.one_in(20) { "mailbox" } else { &domain.name };
                (name, domain.random_entries(random))
            })
            .collect();
        for _ in 0..PER_CONFIGURATION {
            imported.advance(random);
            let (domain, entries) = random.pick(&descriptors).unwrap();
            let (cost, index) = (random.within(0, 3), random.within(0, 2));
            let expected = model.decide(&domains, domain, entries, cost, imported.now());
            let index = usize::try_from(index).unwrap();
            let facts = Facts::of_descriptor(domain, entries.iter().copied(), index).unwrap();
            assert_eq!(
                imported.decide(facts, cost),
                expected,
                "seed {seed}: {domain} {entries:?} cost {cost}\n{}\n{}",
                domains.iter().map(envoy_model::Domain::yaml).collect::<String>(),
                imported.yaml
            );
            figures.add(expected);
        }
    });
    assert!(figures.unlimited > 0);
}

#[test]
fn limitador_policies_decide_like_the_original() {
    run(|seed, figures| {
        let random = &mut Random::new(seed);
        let limits = limitador_model::random_limits(random);
        let text = limitador_model::yaml(&limits, random);
        let (imported, mut model) = (
            Imported::new(import(ImportFormat::Limitador, &[("limits.yaml", &text)])),
            limitador_model::Model::default(),
        );
        for _ in 0..PER_CONFIGURATION {
            imported.advance(random);
            let namespace = *random.pick(&["shop", "shop", "api*", "sh:op", "apis"]).unwrap();
            let (cost, is_first) = (random.within(1, 3), !random.one_in(10));
            let mut entries = entries(random, limitador_model::KEYS, limitador_model::SENT);
            entries.sort_unstable();
            entries.dedup_by_key(|(key, _)| *key);
            let expected = match is_first {
                true => model.decide(&limits, namespace, &entries, cost, imported.now()),
                false => Outcome::NoLimit,
            };
            let index = usize::from(!is_first);
            let facts = Facts::of_descriptor(namespace, entries.iter().copied(), index).unwrap();
            assert_eq!(
                imported.decide(facts, cost),
                expected,
                "seed {seed}: {namespace} {entries:?} cost {cost}\n{text}\n{}",
                imported.yaml
            );
            figures.add(expected);
        }
    });
}

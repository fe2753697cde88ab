//! What all nodes share: the keys, the clock and the network.

use std::sync::{Mutex, MutexGuard};

use tollgate::lease::LeaseTime;
use tollgate::{Clock, Key, Limit, ManualClock, Plan, Subject, Take, Timestamp};

use super::network::Network;
use super::scenario::Scenario;
use std::time::Duration;

/// The time at which simulations start, in microseconds.
pub(super) const START: u64 = 1_794_765_516_667_233;

/// Prefix of the names of keys.
const PREFIX: &str = "k";

/// How the text of a subject without a tenant begins.
const SUBJECT_PREFIX: &str = ":k";

#[derive(Debug)]
pub(super) struct World {
    pub(super) scenario: Scenario,
    pub(super) clock: ManualClock,
    limit: Limit,
    subjects: Box<[Subject]>,
    network: Mutex<Network>,
}

impl World {
    pub(super) fn new(scenario: Scenario) -> Self {
        Self {
            clock: ManualClock::at(Timestamp::from_micros(START)),
            limit: scenario.limit(),
            subjects: (0..scenario.keys)
                .map(|key| Subject::of([format!("{PREFIX}{key}").as_str()]))
                .collect(),
            network: Mutex::new(Network::new(&scenario)),
            scenario,
        }
    }

    pub(super) fn network(&self) -> MutexGuard<'_, Network> {
        self.network.lock().expect("lock is not poisoned")
    }

    pub(super) fn now(&self) -> u64 {
        self.clock.now().as_micros()
    }

    pub(super) fn lease_time(&self) -> LeaseTime {
        let now = Duration::from_micros(self.now());
        LeaseTime::new(now, now)
    }

    pub(super) const fn limit(&self) -> &Limit {
        &self.limit
    }

    /// Returns the plan of one request for a key.
    pub(super) fn plan(&self, key: u32) -> Plan<'_> {
        let subject = &self.subjects[key as usize];
        Plan::new([Take::new(Key::new(subject, &self.limit), 1)]).expect("one take")
    }
}

/// Returns the number of the key of a plan; `None` for the key that probes take from.
pub(super) fn key_of(plan: &Plan<'_>) -> Option<u32> {
    plan.takes().first()?.key().subject().strip_prefix(SUBJECT_PREFIX)?.parse().ok()
}

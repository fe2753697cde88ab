//! The work of Redis for one slot does not grow with the number of slots that are held.

use std::time::Duration;

use tollgate::{Key, Limit, ManualClock, Permit, PermitId, Plan, Store, Subject, Timestamp};
use tollgate_redis::RedisStore;
use tollgate_testkit::server::{Flavor, Raw, Server};

use crate::fixture::{block_on, builder, in_order, plan};

const SLOTS: u64 = 2000;
const START: u64 = 1_750_000_000_000_000;

/// A store on a test clock, and all commands of its scripts.
struct Observed {
    server: Server,
    store: RedisStore,
    clock: ManualClock,
    monitor: Raw,
    subject: Subject,
}

impl Observed {
    fn new() -> Self {
        let server = Server::start(Flavor::Redis);
        let clock = ManualClock::new();
        let store = builder(&server).clock(clock.clone()).build();
        let mut monitor = server.raw();
        monitor.call(&["MONITOR"]);
        Self { server, store, clock, monitor, subject: Subject::of(["k"]) }
    }

    fn set_now(&self, seconds: u64) {
        self.clock.set(Timestamp::from_micros(START + seconds * 1_000_000));
    }

    fn take(&self, limit: &Limit, permit: Option<PermitId>) -> Option<Permit> {
        let request = plan(&self.subject, limit, 1);
        let request = permit.into_iter().fold(request, Plan::with_permit);
        let decision = block_on(self.store.take(&request)).unwrap();
        assert!(decision.is_allowed(), "{limit:?}");
        Permit::of(&request, &decision)
    }

    /// Takes the slots of all callers, in few calls.
    fn fill(&self, limit: &Limit) {
        let request = plan(&self.subject, limit, 1);
        let results = block_on(in_order((0..SLOTS).map(|_| self.store.take(&request))));
        assert!(results.iter().all(|result| result.as_ref().unwrap().is_allowed()));
    }

    /// Returns the number of list elements that scripts have read or written since the last call of this function.
    fn elements(&mut self) -> u64 {
        self.server.raw().call(&["ECHO", "end"]);
        let length = 2 * SLOTS + 1;
        let mut elements = 0;
        loop {
            let line = self.monitor.receive().unwrap().text().to_owned();
            let words: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
            match words.as_slice() {
                ["ECHO", ..] => return elements,
                ["LRANGE", _, first, last] => {
                    let index = |text: &str| match text.parse::<i64>().unwrap() {
                        index @ 0.. => u64::try_from(index).unwrap().min(length),
                        index => length.saturating_sub(index.unsigned_abs()),
                    };
                    elements += (index(last) + 1).saturating_sub(index(first));
                }
                ["RPUSH", _, pushed @ ..] => elements += u64::try_from(pushed.len()).unwrap(),
                _ if line.contains(" lua]") => elements += 1,
                _ => {}
            }
        }
    }
}

fn limit(ttl: u64) -> Limit {
    let limit = Limit::concurrency(2 * SLOTS, Duration::from_secs(ttl)).unwrap();
    limit.named("slots").unwrap()
}

#[test]
fn alternating_ttls_touch_only_new_slots() {
    let mut observed = Observed::new();
    let (long, short) = (limit(7200), limit(3600));
    observed.set_now(0);
    observed.fill(&short);
    observed.elements();
    for second in 1..10 {
        observed.set_now(second);
        observed.take(&long, None);
        observed.take(&short, None);
    }
    let elements = observed.elements();
    assert!(elements < 9 * 100, "{elements} elements for 18 takes");
}

#[test]
fn renewal_of_a_short_slot_moves_no_other_slot() {
    let mut observed = Observed::new();
    observed.set_now(0);
    let permit = observed.take(&limit(3600), Some(PermitId::random())).unwrap();
    observed.fill(&limit(7200));
    observed.elements();
    observed.set_now(1);
    block_on(observed.store.renew(&permit)).unwrap().expect("the permit holds a slot");
    let elements = observed.elements();
    assert!(elements < 100, "{elements} elements for a renewal");
    let key = limit(7200);
    let used = block_on(observed.store.stats(&Key::new(&observed.subject, &key))).unwrap();
    assert_eq!(used.count(), SLOTS + 1);
}

#[test]
fn expired_slots_are_read_once_and_removed_once() {
    let mut observed = Observed::new();
    let limit = limit(3600);
    observed.set_now(0);
    observed.fill(&limit);
    observed.elements();
    observed.set_now(1800);
    observed.take(&limit, None);
    observed.set_now(3600);
    observed.take(&limit, None);
    let elements = observed.elements();
    assert!(elements < 3 * SLOTS, "{elements} elements to remove {SLOTS} slots");
    observed.take(&limit, None);
    let elements = observed.elements();
    assert!(elements < 100, "{elements} elements for a take after the removal");
}

//! Connections that are cut anywhere: what was answered is true and went to who asked, what was not counts
//! as spent, and nothing is sent twice.
//!
//! Every caller has a key and a cost of its own, and numbers whose remainder by sixteen is its own number:
//! an answer that reached the wrong caller would show.

use std::env;
use std::time::Duration;

use tollgate::{Decision, Key, Limit, Quota, Store, StoreError, StoreErrorKind, Subject};
use tollgate_redis::RedisStore;
use tollgate_testkit::proxy::{Direction, Fault, Proxy};
use tollgate_testkit::server::{Flavor, Server};

use crate::fixture::{block_on, in_order, patient, plan};

const CALLERS: u64 = 16;
/// Connections cut while calls are under way. `TOLLGATE_CUTS` asks for more or fewer.
const CUTS: u64 = 10_000;
/// Connections cut while they are greeted: fewer, since after each there is a pause.
const EARLY_CUTS: u64 = 50;

struct Caller {
    number: u64,
    subject: Subject,
    limit: Limit,
    cost: u64,
    /// What was answered to have passed.
    admitted: u64,
    /// What was last told to be used.
    used: u64,
}

impl Caller {
    fn new(number: u64) -> Self {
        let cost = CALLERS * (number + 1);
        // Half of them are refused before long.
        let takes = if number.is_multiple_of(2) { 100 } else { 10_000_000 };
        let quota = Quota::new(cost * takes + number, Duration::from_secs(36_525 * 86_400));
        let limit = match number % 4 {
            2 => Limit::token_bucket(quota),
            _ => Limit::fixed_window(quota),
        };
        let subject = Subject::of([number.to_string()]);
        Self { number, subject, limit: limit.unwrap(), cost, admitted: 0, used: 0 }
    }

    async fn take(&self, store: &RedisStore) -> Result<(bool, u64), StoreError> {
        let told = |decision: Decision<'_>| (decision.is_allowed(), decision.remaining().unwrap());
        store.take(&plan(&self.subject, &self.limit, self.cost)).await.map(told)
    }

    /// An answer must be this caller's own, and agree with all before.
    fn hear(&mut self, answer: Result<(bool, u64), StoreError>) {
        let (is_allowed, remaining) = match answer {
            Ok(told) => told,
            Err(error) => {
                let kind = error.kind();
                assert_eq!(kind, StoreErrorKind::Unavailable, "caller {}: {error}", self.number);
                return;
            }
        };
        let used = self.limit.capacity() - remaining;
        assert_eq!(remaining % CALLERS, self.number, "an answer of another caller");
        assert!(used.is_multiple_of(self.cost), "caller {}: {used} are used", self.number);
        assert!(used >= self.used + if is_allowed { self.cost } else { 0 });
        self.admitted += if is_allowed { self.cost } else { 0 };
        self.used = used;
        assert!(self.admitted <= used && used <= self.limit.capacity());
    }
}

/// A cut that came after the last answer may only be noticed now, but no more than once.
fn connect(store: &RedisStore) {
    if block_on(store.connect()).is_err() {
        block_on(store.connect()).unwrap();
    }
}

async fn all_take(store: &RedisStore, callers: &mut [Caller]) {
    let answers = in_order(callers.iter().map(|caller| caller.take(store))).await;
    callers.iter_mut().zip(answers).for_each(|(caller, answer)| caller.hear(answer));
}

/// After the cuts every answer is exact again, from the first on. What was spent without an answer.
fn assert_exact(store: &RedisStore, server: &Server, callers: &[Caller]) -> u64 {
    let truth = patient(server).max_refusals(0).build();
    connect(store);
    let mut lost = 0;
    for caller in callers {
        let key = Key::new(&caller.subject, &caller.limit);
        let spent = block_on(truth.stats(&key)).unwrap().count();
        assert!(caller.admitted <= spent && spent <= caller.limit.capacity());
        let (is_allowed, remaining) = block_on(caller.take(store)).unwrap();
        let added = if is_allowed { caller.cost } else { 0 };
        assert_eq!(remaining, caller.limit.capacity() - spent - added);
        assert_eq!(is_allowed, spent + caller.cost <= caller.limit.capacity());
        lost += spent - caller.admitted;
    }
    lost
}

fn through(proxy: &Proxy) -> RedisStore {
    let builder = RedisStore::builder(proxy.url().parse().unwrap());
    builder.timeout(Duration::from_secs(60)).max_refusals(0).build()
}

#[test]
fn calls_that_are_cut_anywhere_reach_nobody_else_and_run_once_at_most() {
    let server = Server::start(Flavor::Redis);
    let proxy = Proxy::seeded(server.port(), 1);
    let store = through(&proxy);
    let mut callers: Vec<Caller> = (0..CALLERS).map(Caller::new).collect();
    let cuts = env::var("TOLLGATE_CUTS").ok().and_then(|cuts| cuts.parse().ok()).unwrap_or(CUTS);
    while proxy.cuts() < cuts {
        proxy.set(Fault::Pass);
        connect(&store);
        let before = proxy.cuts();
        // About as long as what is sent and answered at once.
        proxy.set(match before % 2 {
            0 => Fault::CutAfter { towards: Direction::Client, bytes: 0..700 },
            _ => Fault::CutAfter { towards: Direction::Server, bytes: 0..2500 },
        });
        while proxy.cuts() == before {
            block_on(all_take(&store, &mut callers));
        }
    }
    proxy.set(Fault::Pass);
    let lost = assert_exact(&store, &server, &callers);
    assert!(lost > 0, "no answer was cut off, so nothing is proven");
    let is_used_up = |caller: &Caller| caller.used + caller.cost > caller.limit.capacity();
    assert!(callers.iter().step_by(2).all(is_used_up));
}

#[test]
fn connections_that_are_cut_while_they_are_greeted_do_no_harm() {
    let server = Server::start(Flavor::Redis);
    let proxy = Proxy::seeded(server.port(), 2);
    let store = through(&proxy);
    let mut callers: Vec<Caller> = (0..CALLERS).map(Caller::new).collect();
    for nth in 0..EARLY_CUTS {
        let towards = if nth % 2 == 0 { Direction::Client } else { Direction::Server };
        proxy.set(Fault::CutAfter { towards, bytes: 0..120 });
        proxy.cut_all();
        // Whether it comes to be or not, it ends.
        let _ = block_on(store.connect());
        block_on(all_take(&store, &mut callers));
    }
    proxy.set(Fault::Pass);
    proxy.cut_all();
    assert_exact(&store, &server, &callers);
}

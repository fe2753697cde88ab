//! Connections that are cut at any byte: every reply is correct and reaches its own caller, a lost reply counts as
//! spent, and nothing is sent twice.
//!
//! Every caller has its own key and cost. Its figures modulo 16 are its own number, so a reply to the wrong caller
//! is detected.

use std::env;
use std::time::Duration;

use tollgate::{Decision, Key, Limit, Quota, Store, StoreError, StoreErrorKind, Subject};
use tollgate_redis::RedisStore;
use tollgate_testkit::proxy::{Direction, Fault, Proxy};
use tollgate_testkit::server::{Flavor, Server};

use crate::fixture::{block_on, builder, in_order, plan};

const CALLERS: u64 = 16;
/// Number of connections cut during calls. `TOLLGATE_CUTS` sets another number.
const CUTS: u64 = 10_000;
/// Number of connections cut during the handshake: fewer, because each is followed by a delay.
const HANDSHAKE_CUTS: u64 = 50;

struct Caller {
    number: u64,
    subject: Subject,
    limit: Limit,
    cost: u64,
    /// Total cost of the admitted takes.
    admitted: u64,
    /// Usage in the last reply.
    used: u64,
}

impl Caller {
    fn new(number: u64) -> Self {
        let cost = CALLERS * (number + 1);
        // Half of the callers soon use up their limits.
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
        let figures =
            |decision: Decision<'_>| (decision.is_allowed(), decision.remaining().unwrap());
        store.take(&plan(&self.subject, &self.limit, self.cost)).await.map(figures)
    }

    /// Asserts that a reply belongs to this caller and is consistent with the earlier ones.
    fn check(&mut self, result: Result<(bool, u64), StoreError>) {
        let (is_allowed, remaining) = match result {
            Ok(figures) => figures,
            Err(error) => {
                let kind = error.kind();
                assert!(
                    matches!(kind, StoreErrorKind::Unavailable | StoreErrorKind::Lost),
                    "caller {}: {error}",
                    self.number
                );
                return;
            }
        };
        let used = self.limit.capacity() - remaining;
        assert_eq!(remaining % CALLERS, self.number, "the reply belongs to another caller");
        assert!(used.is_multiple_of(self.cost), "caller {}: {used} are used", self.number);
        assert!(used >= self.used + if is_allowed { self.cost } else { 0 });
        self.admitted += if is_allowed { self.cost } else { 0 };
        self.used = used;
        assert!(self.admitted <= used && used <= self.limit.capacity());
    }
}

/// A cut after the last reply may only be detected now, but at most once.
fn connect(store: &RedisStore) {
    if block_on(store.connect()).is_err() {
        block_on(store.connect()).unwrap();
    }
}

async fn all_take(store: &RedisStore, callers: &mut [Caller]) {
    let results = in_order(callers.iter().map(|caller| caller.take(store))).await;
    callers.iter_mut().zip(results).for_each(|(caller, result)| caller.check(result));
}

/// Asserts that all replies after the cuts are exact. Returns the cost that was spent without a reply.
fn assert_exact(store: &RedisStore, server: &Server, callers: &[Caller]) -> u64 {
    let truth = builder(server).max_refusals(0).build();
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

fn store_through(proxy: &Proxy) -> RedisStore {
    let builder = RedisStore::builder(proxy.url().parse().unwrap());
    builder.timeout(Duration::from_secs(60)).max_refusals(0).build()
}

#[test]
fn cut_calls_run_at_most_once_and_reach_their_callers() {
    let server = Server::start(Flavor::Redis);
    let proxy = Proxy::seeded(server.port(), 1);
    let store = store_through(&proxy);
    let mut callers: Vec<Caller> = (0..CALLERS).map(Caller::new).collect();
    let cuts = env::var("TOLLGATE_CUTS").ok().and_then(|cuts| cuts.parse().ok()).unwrap_or(CUTS);
    while proxy.cuts() < cuts {
        proxy.set(Fault::Pass);
        connect(&store);
        let before = proxy.cuts();
        // About the size of one round of requests or replies.
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
    assert!(lost > 0, "no reply was cut off, so the test proves nothing");
    let is_used_up = |caller: &Caller| caller.used + caller.cost > caller.limit.capacity();
    assert!(callers.iter().step_by(2).all(is_used_up));
}

#[test]
fn cut_handshakes_do_no_harm() {
    let server = Server::start(Flavor::Redis);
    let proxy = Proxy::seeded(server.port(), 2);
    let store = store_through(&proxy);
    let mut callers: Vec<Caller> = (0..CALLERS).map(Caller::new).collect();
    for nth in 0..HANDSHAKE_CUTS {
        let towards = if nth % 2 == 0 { Direction::Client } else { Direction::Server };
        proxy.set(Fault::CutAfter { towards, bytes: 0..120 });
        proxy.cut_all();
        // The attempt may fail or succeed.
        let _ = block_on(store.connect());
        block_on(all_take(&store, &mut callers));
    }
    proxy.set(Fault::Pass);
    proxy.cut_all();
    assert_exact(&store, &server, &callers);
}

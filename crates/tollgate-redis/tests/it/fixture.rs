//! Shared servers, stores and limits for the tests.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tollgate::algorithm::CalendarUnit;
use tollgate::{
    Key, Limit, ManualClock, Override, OverrideLimit, Plan, Quota, Subject, Take, Timestamp,
};
use tollgate_redis::{Address, RedisStore, RedisStoreBuilder, Scripting};
use tollgate_testkit::conformance::{Fixture, SuiteSize};
use tollgate_testkit::server::{Certificates, Cluster, Flavor, Raw, Sentinels, Server};

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap());

/// Runs a future on the shared runtime.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    RUNTIME.block_on(future)
}

/// Runs futures concurrently and polls them in order: plans are queued in their order, and those that arrive during
/// a call share the next one.
pub(crate) async fn in_order<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<Pin<Box<F>>> = futures.map(Box::pin).collect();
    let mut results: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, result) in running.iter_mut().zip(&mut results) {
            if result.is_none()
                && let Poll::Ready(output) = future.as_mut().poll(context)
            {
                *result = Some(output);
            }
        }
        if results.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    results.into_iter().flatten().collect()
}

/// Returns the shared server of this process. Tests use distinct key prefixes.
pub(crate) fn shared(flavor: Flavor) -> &'static Server {
    static REDIS: LazyLock<Server> = LazyLock::new(|| Server::start(Flavor::Redis));
    static VALKEY: LazyLock<Server> = LazyLock::new(|| Server::start(Flavor::Valkey));
    match flavor {
        Flavor::Redis => &REDIS,
        Flavor::Valkey => &VALKEY,
    }
}

/// Returns the shared cluster.
pub(crate) fn shared_cluster(flavor: Flavor) -> &'static Cluster {
    static REDIS: LazyLock<Cluster> = LazyLock::new(|| Cluster::of(Flavor::Redis, 3, 0));
    static VALKEY: LazyLock<Cluster> = LazyLock::new(|| Cluster::of(Flavor::Valkey, 3, 0));
    match flavor {
        Flavor::Redis => &REDIS,
        Flavor::Valkey => &VALKEY,
    }
}

/// Returns the shared deployment with sentinels.
pub(crate) fn shared_sentinels(flavor: Flavor) -> &'static Sentinels {
    static REDIS: LazyLock<Sentinels> = LazyLock::new(|| Sentinels::start(Flavor::Redis));
    static VALKEY: LazyLock<Sentinels> = LazyLock::new(|| Sentinels::start(Flavor::Valkey));
    match flavor {
        Flavor::Redis => &REDIS,
        Flavor::Valkey => &VALKEY,
    }
}

/// Returns the URL of the shared TLS server. Only Redis: the installed Valkey has no TLS.
pub(crate) fn shared_tls() -> String {
    static SECURED: LazyLock<(Server, Certificates)> = LazyLock::new(|| {
        let certificates = Certificates::new();
        (Server::builder(Flavor::Redis).tls(&certificates).start(), certificates)
    });
    let (server, certificates) = &*SECURED;
    format!("{}?ca={}", server.url(), certificates.ca.display())
}

/// Returns the URL of the shared Unix socket.
pub(crate) fn shared_socket(flavor: Flavor) -> String {
    static REDIS: LazyLock<Server> =
        LazyLock::new(|| Server::builder(Flavor::Redis).unix().start());
    static VALKEY: LazyLock<Server> =
        LazyLock::new(|| Server::builder(Flavor::Valkey).unix().start());
    let server = match flavor {
        Flavor::Redis => &REDIS,
        Flavor::Valkey => &VALKEY,
    };
    format!("unix://{}", server.unix_path().display())
}

pub(crate) fn address(server: &Server) -> Address {
    server.url().parse().unwrap()
}

/// A builder on the server's clock, with a timeout that no test reaches.
pub(crate) fn builder(server: &Server) -> RedisStoreBuilder {
    builder_at(&server.url())
}

/// Like [`builder`], for a URL.
pub(crate) fn builder_at(url: &str) -> RedisStoreBuilder {
    RedisStore::builder(url.parse().unwrap()).timeout(Duration::from_secs(60))
}

/// Returns one limit per algorithm, with windows of a century.
pub(crate) fn limits_of_each_algorithm(count: u64) -> Vec<Limit> {
    let century = Duration::from_secs(36_525 * 86_400);
    let quota = Quota::new(count, century);
    let limits = [
        Limit::token_bucket(quota),
        Limit::sliding_window(quota),
        Limit::sliding_counter(quota),
        Limit::fixed_window(quota),
        Limit::calendar_window(count, CalendarUnit::Year, "UTC"),
        Limit::concurrency(count, century),
    ];
    limits.map(Result::unwrap).to_vec()
}

/// Returns a plan of one take.
pub(crate) fn plan<'a>(subject: &'a Subject, limit: &'a Limit, cost: u64) -> Plan<'a> {
    Plan::new([Take::new(Key::new(subject, limit), cost)]).unwrap()
}

/// Returns the number of script calls so far.
pub(crate) fn script_calls(raw: &mut Raw) -> u64 {
    let info = raw.call(&["INFO", "commandstats"]);
    let calls = |line: &str| {
        let (name, rest) = line.split_once(":calls=")?;
        let is_script = ["cmdstat_eval", "cmdstat_evalsha", "cmdstat_fcall"].contains(&name);
        is_script.then(|| rest.split(',').next().unwrap().parse::<u64>().unwrap())
    };
    info.text().lines().filter_map(calls).sum()
}

/// Returns the Redis key of a counter.
pub(crate) fn name_of(prefix: &str, key: &Key<'_>) -> String {
    format!("{prefix}{{{}}}:{}", key.subject(), key.limit().identity())
}

/// Returns a unique key prefix.
pub(crate) fn prefix() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("test{}:", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// An isolated store with a test clock.
pub(crate) struct Timed {
    clock: ManualClock,
    store: RedisStore,
    suite_size: SuiteSize,
}

impl Timed {
    /// With scripts or functions. Both have the same code, so functions run the short suite.
    pub(crate) fn new(flavor: Flavor, scripting: Scripting) -> Self {
        let suite_size =
            if scripting == Scripting::Function { SuiteSize::Short } else { SuiteSize::Full };
        Self::of(builder(shared(flavor)).scripting(scripting), suite_size)
    }

    /// On a cluster of three primaries.
    pub(crate) fn on_cluster(flavor: Flavor) -> Self {
        Self::of(builder_at(&shared_cluster(flavor).url()), SuiteSize::Short)
    }

    /// On other servers, by their URL.
    pub(crate) fn by(url: &str) -> Self {
        Self::of(builder_at(url), SuiteSize::Short)
    }

    fn of(builder: RedisStoreBuilder, suite_size: SuiteSize) -> Self {
        let clock = ManualClock::new();
        let builder = builder.prefix(prefix()).unwrap();
        Self { store: builder.clock(clock.clone()).build(), clock, suite_size }
    }
}

impl Fixture for Timed {
    type Store = RedisStore;

    fn store(&self) -> &RedisStore {
        &self.store
    }

    fn set_now(&self, now: Timestamp) {
        self.clock.set(now);
    }

    fn suite_size(&self) -> SuiteSize {
        self.suite_size
    }
}

/// Returns an override of `count` per minute.
pub(crate) fn override_of(count: u64) -> Override {
    Override::new(vec![OverrideLimit::new(count, Duration::from_secs(60))]).unwrap()
}

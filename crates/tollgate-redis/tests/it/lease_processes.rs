//! Processes with leases on one Redis stay within every limit while they are killed, suspended and cut off.
//!
//! `TOLLGATE_LEASE_SECONDS=60 TOLLGATE_LEASE_PROCESSES=8 cargo test --release -p tollgate-redis --features testing
//! --test redis_store lease_processes -- --nocapture` is the long form. A worker process is this test program, started
//! again with one test. It writes the number of its admissions in each millisecond to a file, so that they are known
//! when it is killed.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};
use std::{env, fs};

use tollgate::algorithm::CalendarUnit;
use tollgate::{Key, LeaseSize, Limit, Plan, Quota, Source, Store, Subject, Take};
use tollgate_redis::RedisStore;
use tollgate_testkit::proxy::Proxy;
use tollgate_testkit::server::{Flavor, Server};

use crate::admission_log::{Admissions, Bound};
use crate::fixture::{block_on, in_order};

/// The environment variable with the work of a worker process.
const WORK_VARIABLE: &str = "TOLLGATE_LEASE_WORK";
const CALLERS: usize = 8;
/// A decision that took longer is not counted, because its time is not known well enough.
const MAX_LATENCY: Duration = Duration::from_millis(5);

fn setting(variable: &str, default: u64) -> u64 {
    env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A limit of each algorithm, with its guarantee.
fn limits() -> Vec<(Limit, Bound)> {
    let second = Duration::from_secs(1);
    let window = Duration::from_secs(2);
    let limits = [
        (Limit::token_bucket(Quota::per_second(40_000)), Bound::bucket(40_000, 40_000)),
        (Limit::sliding_window(Quota::new(40_000, window)), Bound::Sliding(40_000, window)),
        (Limit::sliding_counter(Quota::per_second(40_000)), Bound::Fading(40_000, second)),
        (Limit::fixed_window(Quota::per_second(40_000)), Bound::Rolling(40_000, second)),
        (
            Limit::calendar_window(40_000, CalendarUnit::Second, "UTC"),
            Bound::Aligned(40_000, second),
        ),
    ];
    limits.map(|(limit, bound)| (limit.unwrap().with_lease(LeaseSize::Auto), bound)).to_vec()
}

/// The work of one process.
#[derive(Debug, Clone)]
struct Work {
    url: String,
    limit: usize,
    milliseconds: u64,
    log: PathBuf,
}

impl Work {
    /// Returns the work of this process, if it is a worker.
    fn assigned() -> Option<Self> {
        let text = env::var(WORK_VARIABLE).ok()?;
        let mut words = text.split(' ').map(str::to_owned);
        let mut next = || words.next().unwrap();
        Some(Self {
            url: next(),
            limit: next().parse().unwrap(),
            milliseconds: next().parse().unwrap(),
            log: next().into(),
        })
    }

    fn start(&self) -> Child {
        let work =
            format!("{} {} {} {}", self.url, self.limit, self.milliseconds, self.log.display());
        let mut command = Command::new(env::current_exe().unwrap());
        let test = "lease_processes::processes_with_leases_stay_within_each_limit";
        command.args(["--exact", test, "--nocapture"]).env(WORK_VARIABLE, work);
        command.stdout(Stdio::piped()).spawn().unwrap()
    }

    /// Takes for the given time.
    fn run(&self) {
        let store = RedisStore::from_url(&self.url).unwrap();
        let (limit, _) = limits().remove(self.limit);
        let subject = Subject::of(["shared"]);
        let plan = Plan::new([Take::new(Key::new(&subject, &limit), 1)]).unwrap();
        let log = RefCell::new(Log::create(&self.log));
        let end = Instant::now() + Duration::from_millis(self.milliseconds);
        let callers = (0..CALLERS).map(|_| take_until(&store, &plan, end, &log));
        block_on(in_order(callers));
        let log = log.into_inner().finish();
        println!("\nworked {} {} {}", log.decisions, log.leased, log.uncounted);
    }
}

async fn take_until(store: &RedisStore, plan: &Plan<'_>, end: Instant, log: &RefCell<Log>) {
    while Instant::now() < end {
        for _ in 0..64 {
            let started = SystemTime::now();
            // A take whose reply is lost admits no request.
            if let Ok(decision) = store.take(plan).await {
                let source = decision.source();
                log.borrow_mut().record(started, decision.is_allowed(), source);
            }
        }
        tokio::task::yield_now().await;
    }
}

/// The log of a worker: pairs of a millisecond and the admissions in it.
struct Log {
    file: File,
    millisecond: u64,
    admitted: u64,
    decisions: u64,
    leased: u64,
    uncounted: u64,
}

impl Log {
    fn create(path: &Path) -> Self {
        let file = File::create(path).unwrap();
        Self { file, millisecond: 0, admitted: 0, decisions: 0, leased: 0, uncounted: 0 }
    }

    fn record(&mut self, started: SystemTime, is_allowed: bool, source: Source) {
        self.decisions += 1;
        self.leased += u64::from(source == Source::Lease);
        if !is_allowed {
            return;
        }
        let now = SystemTime::now();
        if now.duration_since(started).is_ok_and(|latency| latency > MAX_LATENCY) {
            self.uncounted += 1;
            return;
        }
        let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let millisecond = u64::try_from(since_epoch.as_millis()).unwrap();
        if millisecond != self.millisecond {
            self.write();
            self.millisecond = millisecond;
        }
        self.admitted += 1;
    }

    fn write(&mut self) {
        if self.admitted > 0 {
            writeln!(self.file, "{} {}", self.millisecond, self.admitted).unwrap();
            self.admitted = 0;
        }
    }

    fn finish(mut self) -> Self {
        self.write();
        self
    }
}

fn signal(worker: &Child, signal: &str) {
    let status = Command::new("kill").args([signal, &worker.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// Waits for a worker. Returns its decisions, those from leases, and the admissions that it did not count.
fn totals(worker: Child) -> [u64; 3] {
    let output = worker.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "a worker has failed:\n{text}");
    let line = text.lines().find_map(|line| line.strip_prefix("worked ")).expect("totals");
    let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

/// Runs the workers of one limit: two behind a proxy that cuts their connections, one is killed and one is suspended for
/// longer than a lease lasts.
fn run_workers(limit: usize, server: &Server, folder: &Path) -> (Vec<PathBuf>, [u64; 3]) {
    let milliseconds = setting("TOLLGATE_LEASE_SECONDS", 3) * 1000;
    let processes = usize::try_from(setting("TOLLGATE_LEASE_PROCESSES", 4)).unwrap();
    let proxy = Proxy::start(server.port());
    let log = |name: String| folder.join(format!("{limit}-{name}"));
    let work = |nth: usize| Work {
        url: if nth % 4 == 3 { proxy.url() } else { server.url() },
        limit,
        milliseconds,
        log: log(nth.to_string()),
    };
    let mut logs: Vec<PathBuf> = (0..processes).map(|nth| work(nth).log).collect();
    let mut workers: Vec<Child> = (0..processes).map(|nth| work(nth).start()).collect();
    let quarter = Duration::from_millis(milliseconds / 4);
    pause(quarter);
    let killed = Work { log: log("killed".to_owned()), ..work(0) };
    let mut victim = killed.start();
    logs.push(killed.log);
    pause(quarter);
    signal(&victim, "-KILL");
    victim.wait().unwrap();
    signal(&workers[1], "-STOP");
    for _ in 0..10 {
        pause(Duration::from_millis(130));
        proxy.cut_all();
    }
    signal(&workers[1], "-CONT");
    let all = workers.drain(..).map(totals).fold([0; 3], |mut sum, totals| {
        sum.iter_mut().zip(totals).for_each(|(sum, total)| *sum += total);
        sum
    });
    (logs, all)
}

/// Lets the workers run for a while: nothing is asserted about what they do meanwhile.
fn pause(length: Duration) {
    let (_sender, receiver) = std::sync::mpsc::channel::<()>();
    let _ = receiver.recv_timeout(length);
}

#[test]
fn processes_with_leases_stay_within_each_limit() {
    if let Some(work) = Work::assigned() {
        return work.run();
    }
    let folder = env::temp_dir().join(format!("tollgate-leases-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    for (nth, (limit, bound)) in limits().iter().enumerate() {
        let server = Server::start(Flavor::Redis);
        let (logs, [decisions, leased, uncounted]) = run_workers(nth, &server, &folder);
        let texts = logs.iter().map(|log| fs::read_to_string(log).unwrap_or_default());
        let admissions = Admissions::parse(texts);
        println!(
            "{}: {decisions} decisions, {leased} from leases, {} admitted and {uncounted} not counted, highest {}",
            limit.algorithm(),
            admissions.total(),
            bound.highest(&admissions, MAX_LATENCY)
        );
        assert!(leased > 0, "{}: nothing was leased", limit.algorithm());
        bound.assert_holds(&admissions, MAX_LATENCY);
    }
    fs::remove_dir_all(&folder).unwrap();
}

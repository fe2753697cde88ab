//! A worker process.

use std::cell::RefCell;
use std::io::{Read, stdin};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use std::{env, thread};

use tollgate::{Key, LeaseSize, Limit, Plan, Store, Subject, Take};
use tollgate_redis::RedisStore;

use super::limits;
use super::traffic::Phase;
use super::worker_log::WorkerLog;
use crate::fixture::{block_on, in_order};

/// The environment variable with the work of a worker process.
const WORK_VARIABLE: &str = "TOLLGATE_LEASE_WORK";
const CALLERS: usize = 8;
/// The takes with which a worker leases: twice the demand that is worth a lease, because it may be split between two
/// periods.
const LEASING_TAKES: usize = 32;
/// The size of the leases of every second worker, as a part of the limit.
const LEASED_PART: u64 = 10;
/// A decision that took longer is not counted, because its time is not known well enough.
pub(super) const MAX_LATENCY: Duration = Duration::from_millis(5);
/// The resolution of timers.
const TICK: Duration = Duration::from_millis(1);

/// The work of one process.
#[derive(Debug, Clone)]
pub(super) struct Work {
    pub(super) url: String,
    pub(super) limit: usize,
    pub(super) is_auto: bool,
    pub(super) log: PathBuf,
}

impl Work {
    /// Returns the work of this process, if it is a worker.
    pub(super) fn assigned() -> Option<Self> {
        let text = env::var(WORK_VARIABLE).ok()?;
        let mut words = text.split(' ').map(str::to_owned);
        let mut next = || words.next().unwrap();
        Some(Self {
            url: next(),
            limit: next().parse().unwrap(),
            is_auto: next().parse().unwrap(),
            log: next().into(),
        })
    }

    /// Starts a process. It stops at the end of its input.
    pub(super) fn start(&self) -> Child {
        let work = format!("{} {} {} {}", self.url, self.limit, self.is_auto, self.log.display());
        let mut command = Command::new(env::current_exe().unwrap());
        let test = "lease_processes::processes_with_leases_stay_within_each_limit";
        command.args(["--exact", test, "--nocapture"]).env(WORK_VARIABLE, work);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
    }

    /// Takes until the end of the input.
    pub(super) fn run(&self) {
        let store = RedisStore::from_url(&self.url).unwrap();
        let limit = self.leased_limit();
        let subject = Subject::of(["shared"]);
        let plan = Plan::new([Take::new(Key::new(&subject, &limit), 1)]).unwrap();
        let caller = Caller {
            store: &store,
            plan: &plan,
            hold: limit.lease_hold().unwrap(),
            is_auto: self.is_auto,
            log: RefCell::new(WorkerLog::create(&self.log, MAX_LATENCY)),
            leased_in: AtomicU64::new(0),
            is_stopped: stopped_at_end_of_input(),
        };
        block_on(in_order((0..CALLERS).map(|_| caller.run())));
        caller.log.borrow_mut().write();
    }

    pub(super) fn leased_limit(&self) -> Limit {
        let (limit, _) = limits().remove(self.limit);
        let part = u32::try_from(limit.capacity() / LEASED_PART).unwrap();
        let fixed = LeaseSize::Fixed(NonZeroU32::new(part).unwrap());
        limit.with_lease(if self.is_auto { LeaseSize::Auto } else { fixed })
    }
}

/// Returns a flag that is set at the end of the input.
fn stopped_at_end_of_input() -> Arc<AtomicBool> {
    let is_stopped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_stopped);
    thread::spawn(move || {
        let _ = stdin().read_to_end(&mut Vec::new());
        flag.store(true, Ordering::Relaxed);
    });
    is_stopped
}

/// What the callers of a worker share.
struct Caller<'a, 'p> {
    store: &'a RedisStore,
    plan: &'a Plan<'p>,
    hold: Duration,
    is_auto: bool,
    log: RefCell<WorkerLog>,
    /// The last cycle in which a caller leased.
    leased_in: AtomicU64,
    is_stopped: Arc<AtomicBool>,
}

impl Caller<'_, '_> {
    async fn run(&self) {
        while !self.is_stopped.load(Ordering::Relaxed) {
            match Phase::now(self.hold) {
                Phase::Leasing(cycle)
                    if !self.is_auto && self.leased_in.swap(cycle, Ordering::Relaxed) != cycle =>
                {
                    self.take_many(LEASING_TAKES).await;
                }
                Phase::Leasing(_) | Phase::Idle => tokio::time::sleep(TICK).await,
                Phase::Busy => {
                    self.take_many(64).await;
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    async fn take_many(&self, takes: usize) {
        for _ in 0..takes {
            self.take().await;
        }
    }

    async fn take(&self) {
        let started = SystemTime::now();
        // A take whose reply is lost admits no request.
        let decision = self.store.take(self.plan).await.ok();
        self.log.borrow_mut().record(started, decision.as_ref());
        if decision.is_none() {
            tokio::time::sleep(TICK).await;
        }
    }
}

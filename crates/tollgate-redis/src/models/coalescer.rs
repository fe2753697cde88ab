//! Models of the coalescer: its queue, the tickets of its callers, its calls, and the queue and driver of the link.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Poll;
use std::time::Duration;

use smallvec::SmallVec;
use tollgate::models::shuttle::future::{self, JoinError, JoinHandle, block_on};
use tollgate::models::shuttle::thread;
use tollgate::models::sync::{begin_run, join_tasks};
use tollgate::{Key, Subject, Timestamp};

use super::server::{self, Faults, Runs};
use crate::address::Address;
use crate::call::{PlanReply, Verb, take_of};
use crate::coalesce::{Coalescer, together};
use crate::connection::model::Listener;
use crate::failure::Failure;
use crate::keys::Keys;
use crate::link::{Link, LinkLimits};
use crate::router::{Lane, Router, Scripting, Server};
use crate::script::{Programs, TimeSource};
use crate::slot::Slot;
use crate::time::Time;

/// Longer than a run, so that only modelled timers fire.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// Number of plans that may wait, where that is not the subject.
const MANY: usize = 100;

/// Number of timers that fire: two per caller.
const TIMERS: usize = 8;

/// A caller's result.
type Outcome = Result<PlanReply, Failure>;

/// A coalescer with one server.
struct Fixture {
    coalescer: Arc<Coalescer>,
    router: Arc<Router>,
    lane: Lane,
    runs: Runs,
    listener: Listener,
    /// The results so far, by cost.
    outcomes: Mutex<Vec<(u64, Outcome)>>,
}

impl Fixture {
    fn new(faults: Faults, timers: usize, max_waiting: usize) -> Self {
        // Takes milliseconds, and threads do not change them.
        static PROGRAMS: OnceLock<Arc<Programs>> = OnceLock::new();
        begin_run(timers);
        let (runs, listener) = server::start(faults);
        let programs = PROGRAMS.get_or_init(|| Arc::new(Programs::new(TimeSource::Server)));
        let address: Address = "redis://model".parse().unwrap();
        let limits = LinkLimits { reply_timeout: TIMEOUT, ..LinkLimits::default() };
        let link = Link::new(&address, limits);
        let server = Arc::new(Server::new(link, Arc::clone(programs), Scripting::Script));
        let router = Arc::new(Router::Single(server, None));
        let (time, channel) = (Arc::new(Time::of_server()), "channel".to_owned());
        let coalescer = Coalescer::new(Arc::clone(&router), time, channel, TIMEOUT, max_waiting);
        let lane = router.lane(Slot::ONLY).unwrap();
        Self {
            coalescer: Arc::new(coalescer),
            router,
            lane,
            runs,
            listener,
            outcomes: Mutex::default(),
        }
    }

    /// Decides a plan. Its cost identifies it.
    fn decide(&self, verb: Verb, cost: u64) -> impl Future<Output = Outcome> + Send + use<> {
        let (coalescer, lane) = (Arc::clone(&self.coalescer), self.lane.clone());
        let (limit, subject) = (server::limit(), Subject::of(["k"]));
        let keys = Keys::new("rl:".to_owned());
        let take = take_of(&Key::new(&subject, &limit), cost, &keys, Timestamp::EPOCH);
        async move { coalescer.decide(verb, SmallVec::from_iter([take]), &lane).await }
    }

    fn start(&self, verb: Verb, cost: u64) -> JoinHandle<Outcome> {
        future::spawn(self.decide(verb, cost))
    }

    /// Starts callers with costs from 1.
    fn start_takes(&self, callers: u64) -> Vec<JoinHandle<Outcome>> {
        (1..=callers).map(|cost| self.start(Verb::Take, cost)).collect()
    }

    /// Asserts that a caller's result agrees with what the server did, now and at the end of the run.
    fn assert_outcome(&self, cost: u64, outcome: &Outcome) {
        assert_outcome(&self.runs, cost, outcome);
        self.outcomes.lock().unwrap().push((cost, outcome.clone()));
    }

    /// Waits until no plan is in flight, and asserts that none is counted. Then closes the link, and waits until its driver
    /// and all other tasks have ended.
    fn end(self) -> Runs {
        let Self { coalescer, router, lane, runs, listener, outcomes } = self;
        let Router::Single(server, _) = &*router else { panic!("one server") };
        let counts = || (coalescer.is_idle(), lane.waiting_count(), server.link().pending());
        // Calls of callers that no longer wait end later.
        for _ in 0..10_000 {
            if counts() == (true, 0, 0) {
                break;
            }
            thread::yield_now();
        }
        assert_eq!(counts(), (true, 0, 0), "idle, waiting plans, pending commands");
        drop((coalescer, router, lane));
        listener.close();
        join_tasks();
        for (cost, outcome) in outcomes.into_inner().unwrap() {
            assert_outcome(&runs, cost, &outcome);
        }
        runs
    }
}

/// Asserts that a caller's result is that of its own plan, and that it agrees with what the server did.
fn assert_outcome(runs: &Runs, cost: u64, outcome: &Outcome) {
    let is_forgotten = |failure: &Failure| failure.to_string().contains("has shut down");
    assert!(!outcome.as_ref().is_err_and(is_forgotten), "{cost}: {outcome:?}");
    let runs = runs_of(runs, cost);
    match outcome {
        Ok(PlanReply::Figures(figures)) => {
            assert_eq!(figures.replies[0].remaining(), 1000 * cost + 1, "reply to {cost}");
            assert_eq!(runs, 1, "{cost}");
        }
        Ok(reply) => panic!("{cost}: {reply:?}"),
        Err(failure) if failure.was_sent() => assert!(runs <= 1, "{cost}: {runs} runs"),
        Err(failure) => assert_eq!(runs, 0, "{cost}: {failure}"),
    }
}

/// Returns how often a plan has run.
fn runs_of(runs: &Runs, cost: u64) -> u64 {
    runs.lock().unwrap().get(&cost).copied().unwrap_or(0)
}

fn join<T>(task: JoinHandle<T>) -> Result<T, JoinError> {
    block_on(task)
}

/// Joins callers with costs from 1. Returns the number of those that got a reply.
fn join_all(fixture: &Fixture, callers: Vec<JoinHandle<Outcome>>) -> usize {
    let outcomes: Vec<Outcome> = callers.into_iter().map(|caller| join(caller).unwrap()).collect();
    for (cost, outcome) in (1..).zip(&outcomes) {
        fixture.assert_outcome(cost, outcome);
    }
    outcomes.iter().filter(|outcome| outcome.is_ok()).count()
}

/// Callers that arrive at any time, some of them twice: each plan runs once, and its caller gets its reply.
pub(super) fn callers_get_their_own_replies() {
    let fixture = Fixture::new(Faults::None, 0, MANY);
    let callers = fixture.start_takes(4);
    let twice = {
        let (first, second) = (fixture.decide(Verb::Take, 5), fixture.decide(Verb::Take, 6));
        future::spawn(async move { (first.await, second.await) })
    };
    assert_eq!(join_all(&fixture, callers), 4);
    let (first, second) = join(twice).unwrap();
    fixture.assert_outcome(5, &first);
    fixture.assert_outcome(6, &second);
    assert!(first.is_ok() && second.is_ok());
    fixture.end();
}

/// Callers whose time ends at any time: an unsent plan never runs, and no other caller notices.
pub(super) fn withdrawn_plans_do_not_run_and_others_are_sent_again() {
    let fixture = Fixture::new(Faults::None, TIMERS, MANY);
    let callers = fixture.start_takes(4);
    join_all(&fixture, callers);
    fixture.end();
}

/// As above, and the server does not have the script at first, so that calls are sent twice.
pub(super) fn plans_run_once_if_the_server_loses_its_scripts() {
    for timers in [0, TIMERS] {
        let fixture = Fixture::new(Faults::LostScripts, timers, MANY);
        let callers = fixture.start_takes(4);
        let replies = join_all(&fixture, callers);
        assert!(timers > 0 || replies == 4, "{replies} replies");
        fixture.end();
    }
}

/// Each caller gets a reply or an error, and no plan is sent again that may have run.
pub(super) fn plans_run_at_most_once_if_connections_are_lost() {
    for timers in [0, TIMERS] {
        let fixture = Fixture::new(Faults::LostConnections, timers, MANY);
        let callers = fixture.start_takes(4);
        join_all(&fixture, callers);
        fixture.end();
    }
}

/// Callers that are dropped at any time after they began: a take runs once or not at all, a debit runs once, and the others
/// get their replies.
pub(super) fn dropped_callers_change_nothing_for_others() {
    let fixture = Fixture::new(Faults::None, 0, MANY);
    let callers = fixture.start_takes(3);
    let dropped =
        [(Verb::Take, 4), (Verb::Debit { age: Duration::ZERO }, 5)].map(|(verb, cost)| {
            let mut caller = Box::pin(fixture.decide(verb, cost));
            // The server may have replied already.
            let _: Poll<Outcome> =
                block_on(poll_fn(|context| Poll::Ready(caller.as_mut().poll(context))));
            future::spawn(async move { drop(caller) })
        });
    dropped.into_iter().for_each(|caller| join(caller).unwrap());
    assert_eq!(join_all(&fixture, callers), 3);
    let runs = fixture.end();
    assert!(runs_of(&runs, 4) <= 1);
    assert_eq!(runs_of(&runs, 5), 1, "a debit is sent even if its caller is dropped");
}

/// Plans beyond the cap are refused and never run, and the cap counts each waiting plan once.
pub(super) fn waiting_plans_are_counted_once() {
    for timers in [0, TIMERS] {
        let fixture = Fixture::new(Faults::None, timers, 1);
        let callers = fixture.start_takes(4);
        join_all(&fixture, callers);
        fixture.end();
    }
}

/// Plans of a group and others: each gets its own reply.
pub(super) fn groups_get_their_own_replies() {
    let fixture = Fixture::new(Faults::None, 0, MANY);
    let callers = fixture.start_takes(2);
    let group = {
        let (one, other) = (fixture.decide(Verb::Take, 3), fixture.decide(Verb::Take, 4));
        future::spawn(together(async { tokio::join!(one, other) }))
    };
    assert_eq!(join_all(&fixture, callers), 2);
    let (one, other) = join(group).unwrap();
    fixture.assert_outcome(3, &one);
    fixture.assert_outcome(4, &other);
    assert!(one.is_ok() && other.is_ok());
    fixture.end();
}

//! Calls with named keys, at the nodes of real clusters.

use std::time::Duration;

use tokio::time::Instant;
use tollgate::algorithm::CalendarUnit;
use tollgate::{Key, Limit, Quota, Subject, Timestamp, Verdict};
use tollgate_testkit::server::{Cluster, Flavor, Server, slot_of};

use super::ticket::Ticket;
use super::{
    Batch, EncodedTake, Invocation, KeyForm, PlanReply, QueuedPlan, Verb, Withdrawal, take_of,
};
use crate::fixtures::{address_of, long_timeouts};
use crate::keys::Keys;
use crate::link::Link;
use crate::resp::{Command, Reply};
use crate::script::{Programs, TimeSource};

const START: Timestamp = Timestamp::from_micros(1_750_000_000_000_000);
const WINDOW: Duration = Duration::from_secs(60);
const INVOCATIONS: [Invocation; 2] = [Invocation::Text, Invocation::Function];

/// The result that a caller has received, if any.
#[derive(Debug, PartialEq, Eq)]
enum Received {
    Allowed {
        remaining: u64,
    },
    Refused,
    Number(i64),
    /// The plan is still to be decided.
    Misdirected,
}

/// A program on one node, with a test clock.
struct Node {
    link: Link,
    programs: Programs,
    invocation: Invocation,
}

impl Node {
    async fn new(server: &Server, invocation: Invocation) -> Self {
        let link = Link::new(address_of(server), long_timeouts());
        let programs = Programs::new(TimeSource::Argument);
        if invocation == Invocation::Function {
            let load = Command::new("FUNCTION").arg("LOAD").arg("REPLACE");
            let loaded = link.request(load.arg(programs.library().text())).await;
            assert!(!matches!(loaded, Err(_) | Ok(Reply::Error(_))), "{loaded:?}");
        }
        Self { link, programs, invocation }
    }

    /// Decides plans in one call.
    async fn decide(
        &self,
        form: KeyForm,
        now: Timestamp,
        plans: impl IntoIterator<Item = (Verb, Vec<EncodedTake>)>,
    ) -> Vec<Received> {
        let deadline = Instant::now() + WINDOW;
        let new =
            |(verb, takes): (Verb, Vec<EncodedTake>)| QueuedPlan::new(verb, takes.into(), deadline);
        let plans = plans.into_iter().map(new);
        let (plans, replies): (Vec<_>, Vec<_>) = plans.unzip();
        let (batch, call) = Batch::new(plans, "channel", Some(now), form);
        let reply = self.link.request(call.command(self.invocation, &self.programs)).await;
        let outcome = batch.complete(reply.unwrap());
        assert!(!outcome.refuses_several_slots);
        // Misdirected plans keep their senders until the end.
        let received = replies.into_iter().map(received).collect();
        drop(outcome);
        received
    }
}

fn received(ticket: Ticket) -> Received {
    let Withdrawal::Replied(reply) = ticket.withdraw() else { return Received::Misdirected };
    match reply.unwrap() {
        PlanReply::Number(number) => Received::Number(number),
        PlanReply::Figures(figures) => match figures.replies.last() {
            Some(step) if step.verdict() == Verdict::Allow => {
                Received::Allowed { remaining: step.remaining() }
            }
            _ => Received::Refused,
        },
        reply => panic!("{reply:?}"),
    }
}

fn limits() -> Vec<Limit> {
    let quota = Quota::new(5, WINDOW);
    let limits = [
        Limit::token_bucket(quota),
        Limit::sliding_window(quota),
        Limit::sliding_counter(quota),
        Limit::fixed_window(quota),
        Limit::calendar_window(5, CalendarUnit::Year, "UTC"),
        Limit::concurrency(5, WINDOW),
    ];
    limits.map(Result::unwrap).to_vec()
}

fn take(subject: &str, limit: &Limit, now: Timestamp) -> EncodedTake {
    let subject = Subject::of([subject]);
    take_of(&Key::new(&subject, limit), 1, &Keys::new("rl:".to_owned()), now)
}

/// Returns the slot of a subject.
fn slot(subject: &str) -> u16 {
    slot_of(format!("{{{}}}", Subject::of([subject])))
}

/// Returns whether a node has the slot of a subject.
fn has(cluster: &Cluster, node: &Server, subject: &str) -> bool {
    cluster.primary_of_slot(slot(subject)).port() == node.port()
}

fn clusters(test: &impl AsyncFn(&Cluster, Invocation)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for flavor in Flavor::ALL {
        let cluster = Cluster::of(flavor, 3, 0);
        for invocation in INVOCATIONS {
            cluster.nodes().iter().for_each(|node| drop(node.raw().call(&["FLUSHALL"])));
            runtime.block_on(test(&cluster, invocation));
        }
    }
}

#[test]
fn keys_of_other_nodes_misdirect_only_their_plans() {
    clusters(&async |cluster, invocation| {
        let subjects: Vec<String> = (0..30).map(|nth| format!("s{nth}")).collect();
        for limits in limits().chunks(1).map(<[_]>::to_vec).chain([limits()]) {
            for server in cluster.nodes() {
                server.raw().call(&["FLUSHALL"]);
            }
            let all = || {
                let takes = subjects.iter().zip(limits.iter().cycle());
                takes.map(|(subject, limit)| (Verb::Take, vec![take(subject, limit, START)]))
            };
            for server in cluster.nodes() {
                let node = Node::new(server, invocation).await;
                let received = node.decide(KeyForm::Named, START, all()).await;
                for (subject, received) in subjects.iter().zip(received) {
                    let expected = match has(cluster, server, subject) {
                        true => Received::Allowed { remaining: 4 },
                        false => Received::Misdirected,
                    };
                    assert_eq!(received, expected, "{subject} {invocation:?} {limits:?}");
                }
            }
            let keys = cluster.nodes().iter().map(|node| node.raw().call(&["DBSIZE"]).int());
            assert_eq!(keys.sum::<i64>(), 30);
        }
    });
}

#[test]
fn plan_over_several_nodes_takes_nothing() {
    clusters(&async |cluster, invocation| {
        let server = &cluster.nodes()[0];
        let node = Node::new(server, invocation).await;
        let near = (0..).map(|nth| format!("s{nth}")).find(|name| has(cluster, server, name));
        let far = (0..).map(|nth| format!("s{nth}")).find(|name| !has(cluster, server, name));
        let (near, far) = (near.unwrap(), far.unwrap());
        for limit in limits() {
            let (near, far) = (take(&near, &limit, START), take(&far, &limit, START));
            let plans = [
                (Verb::Take, vec![near.clone(), far.clone()]),
                (Verb::Take, vec![far.clone(), near.clone()]),
                (Verb::Debit { age: Duration::ZERO }, vec![near.clone(), far.clone()]),
                (Verb::Pause { length: WINDOW }, vec![far.clone()]),
                (Verb::Reset, vec![far]),
                (Verb::Take, vec![near.clone()]),
                (Verb::Reset, vec![near.clone()]),
                (Verb::Take, vec![near]),
            ];
            let received = node.decide(KeyForm::Named, START, plans).await;
            let (misdirected, rest) = received.split_at(5);
            assert!(misdirected.iter().all(|received| *received == Received::Misdirected));
            let allowed = || Received::Allowed { remaining: 4 };
            assert_eq!(rest, [allowed(), Received::Number(0), allowed()], "{limit:?}");
        }
    });
}

#[test]
fn migrating_slot_keeps_the_keys_that_have_not_moved() {
    clusters(&async |cluster, invocation| {
        let later = START + 2 * WINDOW;
        let (from, to) = (cluster.primary_of_slot(slot("s")), &cluster.nodes()[0]);
        let to = if from.port() == to.port() { &cluster.nodes()[1] } else { to };
        let node = Node::new(from, invocation).await;
        for form in [KeyForm::Named, KeyForm::Declared] {
            from.raw().call(&["FLUSHALL"]);
            let takes = |now| limits().into_iter().map(move |limit| take("s", &limit, now));
            let each = |now| takes(now).map(|take| (Verb::Take, vec![take]));
            node.decide(KeyForm::Named, START, each(START)).await;
            let migration = cluster.begin_migration(slot("s"), to);
            // All takes have expired, except the one of the year.
            for take in takes(later) {
                let twice = [(Verb::Take, vec![take.clone()]), (Verb::Take, vec![take])];
                let received = node.decide(form, later, twice).await;
                let is_allowed = |received: &Received| matches!(received, Received::Allowed { .. });
                assert!(received.iter().all(is_allowed), "{received:?}");
            }
            for (take, remaining) in takes(later).zip([2, 2, 2, 2, 1, 2]) {
                let received = node.decide(form, later, [(Verb::Take, vec![take])]).await;
                assert_eq!(received, [Received::Allowed { remaining }]);
            }
            if form == KeyForm::Named {
                let limit = Limit::token_bucket(Quota::new(5, WINDOW)).unwrap().named("absent");
                let absent = take("s", &limit.unwrap(), later);
                let received = node.decide(form, later, [(Verb::Take, vec![absent])]).await;
                assert_eq!(received, [Received::Misdirected]);
            }
            drop(migration);
            let word = slot("s").to_string();
            for server in [from, to] {
                server.raw().call(&["CLUSTER", "SETSLOT", &word, "STABLE"]);
            }
        }
    });
}

//! A second load, over RESP, gRPC and forward auth, while another load runs over HTTP.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::front_end::{Connection, FrontEnd, Outcome, Query};
use crate::load::StopOnDrop;
use crate::node::Node;
use crate::tally::{RequestResult, Tally};
use crate::waiting::wait_for;

/// The time between an answer and the next request of a front end.
const INTERVAL: Duration = Duration::from_millis(40);

/// The results of each front end.
pub type Tallies = Vec<(FrontEnd, Tally)>;

/// Sends to all front ends besides HTTP, over one connection each, until `fault` returns, and at least one request over each. `query` gets the number of the
/// request.
pub fn during<R>(
    node: &Node,
    query: impl Fn(u64) -> Query + Sync,
    fault: impl FnOnce() -> R,
) -> (R, Tallies) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let stop = StopOnDrop(&is_over);
        let start = |front_end| {
            let (query, is_over) = (&query, &is_over);
            let sender = scope.spawn(move || send(node, front_end, query, is_over));
            (front_end, sender)
        };
        let senders = FrontEnd::OTHERS.map(start);
        let returned = fault();
        drop(stop);
        let join = |(front_end, sender): (FrontEnd, thread::ScopedJoinHandle<'_, _>)| {
            (front_end, Tally::new(sender.join().expect("a sender does not panic")))
        };
        (returned, senders.into_iter().map(join).collect())
    })
}

fn send(
    node: &Node,
    front_end: FrontEnd,
    query: &impl Fn(u64) -> Query,
    is_over: &AtomicBool,
) -> Vec<RequestResult> {
    let (mut results, mut open) = (Vec::new(), None);
    let address = node.address_of(front_end);
    // At least one request, also if the fault ends before this thread starts.
    loop {
        let number = results.len() as u64;
        let sent = Instant::now();
        let answer = match open.take() {
            Some(connection) => Ok(connection),
            None => Connection::open(front_end, address),
        }
        .and_then(|mut connection: Connection| Ok((connection.check(&query(number))?, connection)));
        let mut result = RequestResult::without_response(number, sent, Instant::now());
        if let Ok((answer, connection)) = answer {
            result.status = Some(match &answer.outcome {
                Outcome::Allowed | Outcome::Refused => 200,
                Outcome::Unavailable | Outcome::Shed => 503,
                Outcome::Error(error) => panic!("{}: {error}", front_end.name()),
            });
            result.is_allowed = answer.is_allowed();
            result.is_shed = answer.outcome == Outcome::Shed;
            open = Some(connection);
        }
        results.push(result);
        wait_for(INTERVAL);
        if is_over.load(Ordering::SeqCst) {
            return results;
        }
    }
}

/// Describes the number of answers of each front end.
pub fn counts(tallies: &Tallies) -> String {
    let count =
        |(front_end, tally): &(FrontEnd, Tally)| format!("{} {}", tally.count(), front_end.name());
    tallies.iter().map(count).collect::<Vec<_>>().join(", ")
}

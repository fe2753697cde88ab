//! A load: concurrent requests while a fault happens.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{Client, key};
use crate::tally::{RequestResult, Tally};
use crate::waiting::wait_until;

/// The stack of a sender thread, in bytes. Senders mostly wait.
const STACK: usize = 128 * 1024;

/// When requests are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// Each connection sends the next request when it has the response.
    Closed,
    /// One request per interval, whether or not earlier ones have responses, as long as a connection is free.
    Open(Duration),
}

/// The requests, the nodes and the pace of a load.
pub struct Load<'a> {
    nodes: Vec<SocketAddr>,
    senders: usize,
    pace: Pace,
    body: Box<dyn Fn(u64) -> String + Sync + 'a>,
}

impl<'a> Load<'a> {
    /// A closed loop: `connections_each` connections to each node.
    pub fn closed(nodes: Vec<SocketAddr>, connections_each: usize) -> Self {
        let senders = nodes.len() * connections_each;
        Self { nodes, senders, pace: Pace::Closed, body: Box::new(|_| key("k")) }
    }

    /// An open loop: `per_second` requests to the nodes in turn, with connections for half a second of requests.
    pub fn open(nodes: Vec<SocketAddr>, per_second: u32) -> Self {
        let senders = usize::try_from(per_second / 2).expect("a number").max(nodes.len() * 2);
        let pace = Pace::Open(Duration::from_secs(1) / per_second);
        Self { nodes, senders, pace, body: Box::new(|_| key("k")) }
    }

    /// Sets the number of connections of an open loop to those for `longest` of requests.
    #[must_use]
    pub fn longest(mut self, longest: Duration) -> Self {
        if let Pace::Open(interval) = self.pace {
            let senders = longest.as_nanos().div_ceil(interval.as_nanos().max(1));
            self.senders = usize::try_from(senders).expect("a number").max(self.senders);
        }
        self
    }

    /// Sets the body by the number of the request.
    #[must_use]
    pub fn body(mut self, body: impl Fn(u64) -> String + Sync + 'a) -> Self {
        self.body = Box::new(body);
        self
    }

    /// Sends `count` requests.
    pub fn send(&self, count: u64) -> Tally {
        self.run(|| {}, &AtomicBool::new(false), count)
    }

    /// Sends requests until `fault` returns.
    pub fn during(&self, fault: impl FnOnce()) -> Tally {
        let is_over = AtomicBool::new(false);
        self.run(
            || {
                let stop = StopOnDrop(&is_over);
                fault();
                drop(stop);
            },
            &is_over,
            u64::MAX,
        )
    }

    fn run(&self, fault: impl FnOnce(), is_over: &AtomicBool, count: u64) -> Tally {
        let (next, began) = (AtomicU64::new(0), Instant::now());
        let tickets = Tickets { next: &next, count, is_over, began, pace: self.pace };
        let results = thread::scope(|scope| {
            let start = |sender: usize| {
                let builder = thread::Builder::new().stack_size(STACK);
                let work = move || self.sender(sender % self.nodes.len(), tickets);
                builder.spawn_scoped(scope, work).expect("start a thread")
            };
            let senders: Vec<_> = (0..self.senders).map(start).collect();
            fault();
            let joined =
                senders.into_iter().map(|sender| sender.join().expect("a sender does not panic"));
            joined.flatten().collect()
        });
        Tally::new(results)
    }

    /// Sends over one connection, and reconnects when it breaks.
    fn sender(&self, node: usize, tickets: Tickets<'_>) -> Vec<RequestResult> {
        let (mut results, mut client) = (Vec::new(), None);
        while let Some((number, due)) = tickets.take() {
            wait_until(due);
            let sent = Instant::now();
            let body = (self.body)(number);
            let reply = match client.take() {
                Some(client) => Ok(client),
                None => Client::connect(self.nodes[node]),
            }
            .and_then(|mut open: Client| Ok((open.post("/check", &body)?, open)));
            let answered = Instant::now();
            let (status, is_allowed, is_degraded, is_shed) = (None, false, false, false);
            let mut result = RequestResult {
                number,
                node,
                due,
                sent,
                answered,
                status,
                is_allowed,
                is_degraded,
                is_shed,
            };
            if let Ok((reply, open)) = reply {
                result.set_reply(&reply);
                client = Some(open);
            }
            results.push(result);
        }
        results
    }
}

/// Hands out the numbers and times of requests.
#[derive(Clone, Copy)]
struct Tickets<'a> {
    next: &'a AtomicU64,
    count: u64,
    is_over: &'a AtomicBool,
    began: Instant,
    pace: Pace,
}

impl Tickets<'_> {
    fn take(self) -> Option<(u64, Instant)> {
        if self.is_over.load(Ordering::SeqCst) {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        let due = match self.pace {
            Pace::Closed => Instant::now(),
            Pace::Open(apart) => {
                self.began + apart.saturating_mul(u32::try_from(number).unwrap_or(u32::MAX))
            }
        };
        (number < self.count).then_some((number, due))
    }
}

/// Stops a load, also when the fault panics.
pub(crate) struct StopOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl std::fmt::Debug for Load<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Load").field("nodes", &self.nodes).field("pace", &self.pace).finish()
    }
}

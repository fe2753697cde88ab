//! Questions, many at a time, while something happens.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{Client, key};
use crate::passage::until;
use crate::tally::{Heard, Tally};

/// Threads only wait here: they need little.
const STACK: usize = 128 * 1024;

/// When questions are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// Each asks again as soon as it is answered.
    Closed,
    /// So far apart, whether or not those before are answered, as long as somebody is free to ask.
    Open(Duration),
}

/// What is asked, of whom, how fast.
pub struct Load<'a> {
    nodes: Vec<SocketAddr>,
    askers: usize,
    pace: Pace,
    question: Box<dyn Fn(u64) -> String + Sync + 'a>,
}

impl<'a> Load<'a> {
    /// Some connections to each of these nodes, on which one question follows the other.
    pub fn closed(nodes: Vec<SocketAddr>, connections_each: usize) -> Self {
        let askers = nodes.len() * connections_each;
        Self { nodes, askers, pace: Pace::Closed, question: Box::new(|_| key("k")) }
    }

    /// So many questions a second, to these nodes in turn; enough connections for half a second's worth.
    pub fn open(nodes: Vec<SocketAddr>, per_second: u32) -> Self {
        let askers = usize::try_from(per_second / 2).expect("a number").max(nodes.len() * 2);
        let pace = Pace::Open(Duration::from_secs(1) / per_second);
        Self { nodes, askers, pace, question: Box::new(|_| key("k")) }
    }

    /// Asks this, by the number of the question.
    #[must_use]
    pub fn asking(mut self, question: impl Fn(u64) -> String + Sync + 'a) -> Self {
        self.question = Box::new(question);
        self
    }

    /// Asks so many questions.
    pub fn ask(&self, count: u64) -> Tally {
        self.run(|| {}, &AtomicBool::new(false), count)
    }

    /// Asks until something is over.
    pub fn during(&self, happens: impl FnOnce()) -> Tally {
        let is_over = AtomicBool::new(false);
        self.run(
            || {
                let over = Over(&is_over);
                happens();
                drop(over);
            },
            &is_over,
            u64::MAX,
        )
    }

    fn run(&self, happens: impl FnOnce(), is_over: &AtomicBool, count: u64) -> Tally {
        let (next, began) = (AtomicU64::new(0), Instant::now());
        let tickets = Tickets { next: &next, count, is_over, began, pace: self.pace };
        let heard = thread::scope(|scope| {
            let start = |asker: usize| {
                let builder = thread::Builder::new().stack_size(STACK);
                let work = move || self.asker(asker % self.nodes.len(), tickets);
                builder.spawn_scoped(scope, work).expect("threads can be started")
            };
            let askers: Vec<_> = (0..self.askers).map(start).collect();
            happens();
            let joined = askers.into_iter().map(|asker| asker.join().expect("an asker asks"));
            joined.flatten().collect()
        });
        Tally::new(heard)
    }

    /// One connection, and another when that breaks.
    fn asker(&self, node: usize, tickets: Tickets<'_>) -> Vec<Heard> {
        let (mut heard, mut client) = (Vec::new(), None);
        while let Some((number, due)) = tickets.take() {
            until(due);
            let sent = Instant::now();
            let question = (self.question)(number);
            let reply = match client.take() {
                Some(client) => Ok(client),
                None => Client::connect(self.nodes[node]),
            }
            .and_then(|mut open: Client| Ok((open.post("/check", &question)?, open)));
            let answered = Instant::now();
            let (status, is_allowed, is_degraded) = (None, false, false);
            let mut one =
                Heard { number, node, due, sent, answered, status, is_allowed, is_degraded };
            if let Ok((reply, open)) = reply {
                one.of(&reply);
                client = Some(open);
            }
            heard.push(one);
        }
        heard
    }
}

/// Who may ask what, and when.
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

/// Ends a load, also when what happens meanwhile panics.
pub(crate) struct Over<'a>(pub(crate) &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl std::fmt::Debug for Load<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Load").field("nodes", &self.nodes).field("pace", &self.pace).finish()
    }
}

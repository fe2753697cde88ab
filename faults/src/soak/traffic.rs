//! The clients of a soak: counted ones, whose limits are checked, and ever new ones.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};
use std::{mem, thread};

use tollgate_testkit::random::Random;

use super::counted::{Admissions, Segments, Store};
use super::system::System;
use crate::client::{Client, Reply, on_path};
use crate::waiting::wait_until;

/// Connections to each node.
const SENDERS_PER_NODE: usize = 3;

/// Counted clients of each store. Each has more requests than its limit.
const COUNTED: u64 = 4;

/// The number of requests per request of a counted client, and per request under the rule whose limit changes.
const COUNTED_EVERY: u64 = 8;
const CHANGING_EVERY: u64 = 50;

/// Other clients at a time, and the time until others take their place.
const CLIENTS: u64 = 5000;
const CLIENTS_CHANGE_EVERY: Duration = Duration::from_secs(5);

/// The time for which the peak is measured.
const PEAK_TIME: Duration = Duration::from_secs(3);

/// Stops the senders when it is dropped, so that a panic of the program also ends them.
pub(super) struct StopOnDrop<'a>(pub(super) &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Senders at a constant pace.
pub(super) struct Traffic<'a> {
    segments: &'a Segments,
    senders: Vec<(Store, SocketAddr)>,
    interval: Duration,
}

/// The results of one sender.
#[derive(Debug, Default)]
pub(super) struct Results {
    pub(super) requests: u64,
    pub(super) admissions: Admissions,
    pub(super) shed: u64,
    /// Responses with status 500 and above that were not shed, and lost connections.
    pub(super) failed: Vec<String>,
}

impl<'a> Traffic<'a> {
    /// Traffic of `per_second` requests in all.
    pub(super) fn new(system: &System, segments: &'a Segments, per_second: u32) -> Self {
        let senders = senders(system);
        let count = u32::try_from(senders.len()).expect("few senders");
        let interval = Duration::from_secs(1) * count / per_second.max(1);
        Self { segments, senders, interval }
    }

    /// Measures the requests per second that the nodes answer when each connection sends without pause.
    pub(super) fn peak(system: &System) -> u32 {
        let (segments, is_over) = (Segments::new(), AtomicBool::new(false));
        let unpaced =
            Traffic { segments: &segments, senders: senders(system), interval: Duration::ZERO };
        let results: Vec<Results> = thread::scope(|scope| {
            let senders = unpaced.spawn(scope, &is_over);
            wait_until(Instant::now() + PEAK_TIME);
            drop(StopOnDrop(&is_over));
            senders.into_iter().map(|sender| sender.join().expect("a sender")).collect()
        });
        let requests: u64 = results.iter().map(|result| result.requests).sum();
        u32::try_from(requests / PEAK_TIME.as_secs()).expect("fewer than 2^32 requests")
    }

    /// Starts the senders, which run until `is_over`.
    pub(super) fn spawn<'scope, 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        is_over: &'env AtomicBool,
    ) -> Vec<ScopedJoinHandle<'scope, Results>> {
        let numbered = (1..).zip(&self.senders);
        let sender = |(number, (store, address)): (u64, &'env (Store, SocketAddr))| {
            scope.spawn(move || self.send(number, (*store, *address), is_over))
        };
        numbered.map(sender).collect()
    }

    fn send(
        &self,
        number: u64,
        (store, address): (Store, SocketAddr),
        is_over: &AtomicBool,
    ) -> Results {
        let (mut random, mut results) = (Random::new(number), Results::default());
        let (began, mut due) = (Instant::now(), Instant::now());
        let mut connection = Client::connect(address);
        while !is_over.load(Ordering::Relaxed) {
            // A sender that is late sends at once, and does not catch up.
            due = Instant::now().max(due + self.interval);
            wait_until(due);
            let (body, counted) = request(&mut random, began.elapsed());
            let segment = self.segment(store);
            let Some(reply) = results.receive(post(&mut connection, address, &body)) else {
                continue;
            };
            if let Some(client) =
                counted.filter(|_| reply.is_allowed() && segment == self.segment(store))
            {
                *results.admissions.entry((segment, store, client)).or_default() += 1;
                if store == Store::Redis {
                    self.segments.record_admission(segment);
                }
            }
        }
        results
    }

    /// The current segment. Faults of Redis do not concern the memory store.
    fn segment(&self, store: Store) -> usize {
        match store {
            Store::Memory => 0,
            Store::Redis => self.segments.current(),
        }
    }
}

impl Results {
    /// Counts a response. Returns it unless it failed.
    fn receive(&mut self, reply: io::Result<Reply>) -> Option<Reply> {
        self.requests += 1;
        match reply {
            Ok(reply) if reply.is_shed() => self.shed += 1,
            Ok(reply) if reply.status >= 500 => self.failed.push(reply.head + &reply.body),
            Ok(reply) => return Some(reply),
            Err(error) => self.failed.push(error.to_string()),
        }
        None
    }

    /// Adds the results of another sender.
    pub(super) fn add(&mut self, mut other: Self) {
        self.requests += other.requests;
        self.shed += other.shed;
        self.failed.append(&mut other.failed);
        for (key, count) in mem::take(&mut other.admissions) {
            *self.admissions.entry(key).or_default() += count;
        }
    }
}

fn senders(system: &System) -> Vec<(Store, SocketAddr)> {
    let memory = [(Store::Memory, system.memory.address())];
    let redis = system.fleet.addresses().into_iter().map(|address| (Store::Redis, address));
    memory.into_iter().chain(redis).flat_map(|node| [node; SENDERS_PER_NODE]).collect()
}

/// Posts over the connection, or over a new one if there is none.
fn post(connection: &mut io::Result<Client>, address: SocketAddr, body: &str) -> io::Result<Reply> {
    if connection.is_err() {
        *connection = Client::connect(address);
    }
    let reply = match connection {
        Ok(client) => client.post("/check", body),
        Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
    };
    if let Err(error) = &reply {
        *connection = Err(error.kind().into());
    }
    reply
}

/// A request at this time, and the number of the client if it is counted.
fn request(random: &mut Random, at: Duration) -> (String, Option<u64>) {
    let draw = random.draw();
    if draw.is_multiple_of(COUNTED_EVERY) {
        let client = draw / COUNTED_EVERY % COUNTED;
        return (on_path(&format!("counted-{client}"), "/counted"), Some(client));
    }
    let generation = at.as_secs() / CLIENTS_CHANGE_EVERY.as_secs();
    let client = format!("{generation}-{}", random.within(1, CLIENTS));
    let path = if draw % CHANGING_EVERY == 1 { "/changing" } else { "/churn" };
    (on_path(&client, path), None)
}

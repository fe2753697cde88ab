//! A node that is killed while it writes admin changes.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::node::Node;
use crate::override_api::{FILE, StoredOverrides, limit, limit_in, limits_of};
use crate::scale::Scale;
use crate::stage::Stage;
use crate::waiting::wait_for;

const CLIENTS: [&str; 3] = ["a", "b", "c"];

/// The client whose override is changed by a caller that disconnects before the response.
const ABANDONED: &str = "d";

/// The golden ratio conjugate: the fractions of its multiples spread evenly between 0 and 1.
const GOLDEN_RATIO: f64 = 0.618_033_988_749_895;

/// The latest kill, in durations of a usual write.
const LATEST_KILL: f64 = 1.2;

pub(super) fn interrupted_change_is_complete_or_absent(stage: &Stage) -> String {
    let directory = stage.scratch().path().join("data");
    let setup = stage.node().with("data-dir", &directory);
    let kills: u32 = stage.scale().pick(40, 1000);
    let (mut expected, mut seen, mut node) = (Expected::default(), Seen::default(), setup.start());
    let mut write_time = expected.change(&node, CLIENTS[0]);
    for kill in 0..kills {
        let fraction = (f64::from(kill) * GOLDEN_RATIO).fract();
        let abandoned = expected.abandon(&node, write_time.mul_f64(fraction));
        write_time = expected.change(&node, CLIENTS[kill as usize % CLIENTS.len()]);
        // One, then two, then three at the same time.
        let others = kill / 3 % 3;
        let pending = expected.begin(&node, &CLIENTS[..=others as usize]);
        wait_for(write_time.mul_f64(fraction * LATEST_KILL) * (1 + others));
        node.kill();
        seen.record_incomplete_file(&directory);
        let stored = StoredOverrides::read(&directory);
        node = setup.start();
        expected.settle_abandoned(&node, abandoned, &mut seen);
        expected.settle(&node, pending, &mut seen);
        assert_eq!(stored.last_id(), expected.changes, "the audit has each change once");
        expected.assert_newest(&node);
    }
    seen.assert_conclusive(stage);
    assert!(!node.log().contains("panicked"), "{}", node.log());
    format!(
        "{kills} kills, {} of {} pending changes not acknowledged: {} made, {} not; {} left an incomplete new file \
         next to the intact one; {} were made after the caller disconnected. No torn file, no acknowledged change \
         lost, the audit agrees, every start succeeds",
        seen.old + seen.new,
        seen.old + seen.new + seen.acknowledged,
        seen.new,
        seen.old,
        seen.incomplete_files,
        seen.abandoned
    )
}

/// The override that each client must have.
#[derive(Default)]
struct Expected {
    limits: BTreeMap<&'static str, u64>,
    /// The next limit; no limit is used twice.
    next: u64,
    /// The number of changes made.
    changes: u64,
}

/// A change that was sent.
struct Pending {
    client: &'static str,
    to: Option<u64>,
    connection: Client,
}

/// The outcomes of pending changes.
#[derive(Default)]
struct Seen {
    acknowledged: u32,
    /// Not acknowledged, and not made.
    old: u32,
    /// Not acknowledged, but made.
    new: u32,
    incomplete_files: u32,
    /// Changes that were made although the caller disconnected.
    abandoned: u32,
}

impl Expected {
    /// Sends a change of a client: usually a new limit, sometimes a removal.
    fn send(&mut self, mut connection: Client, client: &'static str) -> Pending {
        self.next += 1;
        let is_removed = self.next.is_multiple_of(4) && self.limits.contains_key(client);
        let to = (!is_removed).then_some(self.next);
        let sent = match to {
            Some(to) => connection.request("PUT", &limits_of(client), limit(to)),
            None => connection.request("DELETE", &limits_of(client), ""),
        };
        sent.expect("the connection is open");
        Pending { client, to, connection }
    }

    /// Changes a client and waits for the response. Returns the time taken.
    fn change(&mut self, node: &Node, client: &'static str) -> Duration {
        let (connection, began) = (node.client(), Instant::now());
        let mut pending = self.send(connection, client);
        let reply = pending.connection.receive().expect("the node responds");
        assert!([200, 204].contains(&reply.status), "{} {}", reply.status, reply.body);
        self.set(client, pending.to);
        began.elapsed()
    }

    /// Sends a change and disconnects after a while. Returns the new limit.
    fn abandon(&mut self, node: &Node, after: Duration) -> Option<u64> {
        let pending = self.send(node.client(), ABANDONED);
        wait_for(after);
        pending.to
    }

    /// Reads the outcome of an abandoned change: it is either active or absent.
    fn settle_abandoned(&mut self, node: &Node, to: Option<u64>, seen: &mut Seen) {
        let (before, now) = (self.limits.get(ABANDONED).copied(), node.override_limit(ABANDONED));
        if now == to {
            seen.abandoned += 1;
            self.set(ABANDONED, to);
        } else {
            assert_eq!(now, before, "neither the old limit nor {to:?}");
        }
    }

    /// Sends a change of each client, all at the same time.
    fn begin(&mut self, node: &Node, clients: &[&'static str]) -> Vec<Pending> {
        let open: Vec<Client> = clients.iter().map(|_| node.client()).collect();
        open.into_iter().zip(clients).map(|(open, client)| self.send(open, client)).collect()
    }

    /// Reads the outcome of each change: an acknowledged one is active, another one is either active or absent.
    /// Other clients are unchanged.
    fn settle(&mut self, node: &Node, all: Vec<Pending>, seen: &mut Seen) {
        for Pending { client, to, mut connection } in all {
            let (before, now) = (self.limits.get(client).copied(), node.override_limit(client));
            if let Ok(reply) = connection.receive() {
                assert!([200, 204].contains(&reply.status), "{} {}", reply.status, reply.body);
                assert_eq!(
                    now, to,
                    "the change of {client} was acknowledged; the limit before was {before:?}"
                );
                seen.acknowledged += 1;
                self.set(client, to);
            } else if now == to {
                seen.new += 1;
                self.set(client, to);
            } else {
                assert_eq!(now, before, "{client} has neither the old limit nor {to:?}");
                seen.old += 1;
            }
        }
        for client in CLIENTS.into_iter().chain([ABANDONED]) {
            let expected = self.limits.get(client).copied();
            assert_eq!(node.override_limit(client), expected, "{client}");
        }
    }

    fn set(&mut self, client: &'static str, to: Option<u64>) {
        match to {
            Some(to) => self.limits.insert(client, to),
            None => self.limits.remove(client),
        };
        self.changes += 1;
    }

    /// Asserts that the newest audit entry has the client's current limit.
    fn assert_newest(&self, node: &Node) {
        let newest = node.audit(1).pop().expect("there were changes");
        let client = newest["client"].as_str().expect("a client");
        assert_eq!(limit_in(&newest["new"]), self.limits.get(client).copied(), "{newest}");
    }
}

impl Seen {
    fn record_incomplete_file(&mut self, directory: &Path) {
        self.incomplete_files += u32::from(directory.join(format!("{FILE}.new")).exists());
    }

    /// Asserts that enough kills interrupted a change: a kill that is too early or too late proves nothing.
    fn assert_conclusive(&self, stage: &Stage) {
        let (min, cut) = (stage.scale().pick(1, 100), self.old + self.new);
        assert!(cut >= min, "only {cut} changes were interrupted");
        let has_both = self.old.min(self.new) > 0;
        assert!(has_both || stage.scale() == Scale::Quick, "{} made, {} not", self.new, self.old);
    }
}

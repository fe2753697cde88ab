//! A node that is killed while it writes down what administrators change.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::node::Node;
use crate::override_api::{FILE, StoredOverrides, limit, limit_in, limits_of};
use crate::stage::{Scale, Stage};
use crate::waiting::wait_for;

const CLIENTS: [&str; 3] = ["a", "b", "c"];

/// Who is changed by somebody that hangs up and never hears of it.
const UNHEARD: &str = "d";

/// Multiples of it fall evenly between 0 and 1, however many there are.
const GOLDEN: f64 = 0.618_033_988_749_895;

/// How far past the usual end of a write a kill may come.
const BEYOND: f64 = 1.2;

pub(super) fn interrupted_change_is_complete_or_absent(stage: &Stage) -> String {
    let directory = stage.scratch().path().join("data");
    let setup = stage.node().with("data-dir", &directory);
    let kills: u32 = stage.scale().pick(40, 1000);
    let (mut book, mut seen, mut node) = (Book::default(), Seen::default(), setup.start());
    let mut usual = book.change(&node, CLIENTS[0]);
    for kill in 0..kills {
        let share = (f64::from(kill) * GOLDEN).fract();
        let hung_up = book.hang_up(&node, usual.mul_f64(share));
        usual = book.change(&node, CLIENTS[kill as usize % CLIENTS.len()]);
        // One, then two, then all at once.
        let others = kill / 3 % 3;
        let under_way = book.begin(&node, &CLIENTS[..=others as usize]);
        wait_for(usual.mul_f64(share * BEYOND) * (1 + others));
        node.kill();
        seen.note_half(&directory);
        let kept = StoredOverrides::read(&directory);
        node = setup.start();
        book.settle_unheard(&node, hung_up, &mut seen);
        book.settle(&node, under_way, &mut seen);
        assert_eq!(kept.last_id(), book.changes, "each change is in the audit, once");
        book.assert_newest(&node);
    }
    seen.assert_telling(stage);
    assert!(!node.log().contains("panicked"), "{}", node.log());
    format!(
        "{kills} kills, {} of {} changes under way not acknowledged: {} made, {} not; {} left half a file beside the \
         whole one; {} were made after who asked hung up. Never torn, none acknowledged lost, the audit agrees, every start succeeds",
        seen.old + seen.new,
        seen.old + seen.new + seen.acknowledged,
        seen.new,
        seen.old,
        seen.halves,
        seen.unheard
    )
}

/// What each client must have.
#[derive(Default)]
struct Book {
    own: BTreeMap<&'static str, u64>,
    /// Every limit is another.
    next: u64,
    /// How many there were.
    changes: u64,
}

/// A change that was asked for.
struct UnderWay {
    of: &'static str,
    to: Option<u64>,
    client: Client,
}

#[derive(Default)]
struct Seen {
    acknowledged: u32,
    old: u32,
    new: u32,
    halves: u32,
    /// Changes that were made, and whose authors had hung up.
    unheard: u32,
}

impl Book {
    /// Asks for one more change of a client: mostly another limit, sometimes none.
    fn send(&mut self, mut client: Client, of: &'static str) -> UnderWay {
        self.next += 1;
        let is_removed = self.next.is_multiple_of(4) && self.own.contains_key(of);
        let to = (!is_removed).then_some(self.next);
        let sent = match to {
            Some(to) => client.request("PUT", &limits_of(of), limit(to)),
            None => client.request("DELETE", &limits_of(of), ""),
        };
        sent.expect("it is connected");
        UnderWay { of, to, client }
    }

    /// Changes a client and waits for the response. Returns the time taken.
    fn change(&mut self, node: &Node, of: &'static str) -> Duration {
        let (client, began) = (node.client(), Instant::now());
        let mut asked = self.send(client, of);
        let reply = asked.client.receive().expect("the node responds");
        assert!([200, 204].contains(&reply.status), "{} {}", reply.status, reply.body);
        self.set(of, asked.to);
        began.elapsed()
    }

    /// Asks for a change, and hangs up after a while; what it was to be.
    fn hang_up(&mut self, node: &Node, after: Duration) -> Option<u64> {
        let asked = self.send(node.client(), UNHEARD);
        wait_for(after);
        asked.to
    }

    /// Finds out what became of that one.
    fn settle_unheard(&mut self, node: &Node, to: Option<u64>, seen: &mut Seen) {
        let (before, now) = (self.own.get(UNHEARD).copied(), node.override_limit(UNHEARD));
        if now == to {
            seen.unheard += 1;
            self.set(UNHEARD, to);
        } else {
            assert_eq!(now, before, "it was to be {to:?}, and is neither");
        }
    }

    /// Asks for a change of each, all at once.
    fn begin(&mut self, node: &Node, all: &[&'static str]) -> Vec<UnderWay> {
        let connected: Vec<Client> = all.iter().map(|_| node.client()).collect();
        connected.into_iter().zip(all).map(|(client, of)| self.send(client, of)).collect()
    }

    /// Reads the outcome of each change: an acknowledged one is active, another one is either active or absent.
    /// Other clients are unchanged.
    fn settle(&mut self, node: &Node, under_way: Vec<UnderWay>, seen: &mut Seen) {
        for UnderWay { of, to, mut client } in under_way {
            let (before, now) = (self.own.get(of).copied(), node.override_limit(of));
            if let Ok(reply) = client.receive() {
                assert!([200, 204].contains(&reply.status), "{} {}", reply.status, reply.body);
                assert_eq!(now, to, "{of} was acknowledged; before it had {before:?}");
                seen.acknowledged += 1;
                self.set(of, to);
            } else if now == to {
                seen.new += 1;
                self.set(of, to);
            } else {
                assert_eq!(now, before, "{of} was to have {to:?}, and has neither");
                seen.old += 1;
            }
        }
        for of in CLIENTS.into_iter().chain([UNHEARD]) {
            assert_eq!(node.override_limit(of), self.own.get(of).copied(), "{of}");
        }
    }

    fn set(&mut self, of: &'static str, to: Option<u64>) {
        match to {
            Some(to) => self.own.insert(of, to),
            None => self.own.remove(of),
        };
        self.changes += 1;
    }

    /// The newest entry of the audit says what that client has.
    fn assert_newest(&self, node: &Node) {
        let newest = node.audit(1).pop().expect("there were changes");
        let of = newest["client"].as_str().expect("a client");
        assert_eq!(limit_in(&newest["new"]), self.own.get(of).copied(), "{newest}");
    }
}

impl Seen {
    fn note_half(&mut self, directory: &Path) {
        self.halves += u32::from(directory.join(format!("{FILE}.new")).exists());
    }

    /// Kills that come too late or too early prove nothing.
    fn assert_telling(&self, stage: &Stage) {
        let (least, cut) = (stage.scale().pick(1, 100), self.old + self.new);
        assert!(cut >= least, "only {cut} changes were cut off");
        let is_both = self.old.min(self.new) > 0;
        assert!(is_both || stage.scale() == Scale::Quick, "{} made, {} not", self.new, self.old);
    }
}

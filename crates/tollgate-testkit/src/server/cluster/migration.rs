//! A slot moves from one primary to another, in steps that a test can stop between.

use super::form::ok;
use super::{Cluster, myself};
use crate::server::{Raw, Server, Value};
use crate::wait::eventually;

/// The number of keys that one command moves.
const KEYS_PER_COMMAND: usize = 100;

/// A slot that is being moved: each key is at one of two primaries, and the source redirects (`ASK`) requests for keys
/// that have moved. Dropping this leaves the slot in that state.
#[derive(Debug)]
#[must_use = "a slot stays in migration until `finish`"]
pub struct Migration<'a> {
    cluster: &'a Cluster,
    slot: u16,
    from: &'a Server,
    to: &'a Server,
    source: Raw,
}

impl Cluster {
    /// Marks a slot as migrating at both primaries. Its keys do not move yet.
    ///
    /// # Panics
    /// If `to` is not a primary, or already has the slot.
    pub fn begin_migration<'a>(&'a self, slot: u16, to: &'a Server) -> Migration<'a> {
        let from = self.primary_of_slot(slot);
        let word = slot.to_string();
        ok(to, &["CLUSTER", "SETSLOT", &word, "IMPORTING", self.id(from)]);
        ok(from, &["CLUSTER", "SETSLOT", &word, "MIGRATING", self.id(to)]);
        Migration { cluster: self, slot, from, to, source: from.raw() }
    }

    /// Moves a slot with its keys.
    pub fn migrate_slot(&self, slot: u16, to: &Server) {
        self.begin_migration(slot, to).finish();
    }

    /// Moves slots one after another, except those that `to` already has. Hundreds of slots take seconds.
    pub fn reshard(&self, slots: impl IntoIterator<Item = u16>, to: &Server) {
        for slot in slots {
            if self.primary_of_slot(slot).port() != to.port() {
                self.migrate_slot(slot, to);
            }
        }
    }
}

impl Cluster {
    /// Waits until a node knows the configuration epochs of all primaries, and no two are equal. Otherwise it may get a
    /// slot at an epoch below that of the former owner, whose next message takes it back, so that no node has the slot.
    fn wait_for_epochs(&self, node: &Server) {
        eventually("the new owner knows all configuration epochs", || {
            let members = self.nodes.iter().filter_map(myself);
            let primaries = members.filter(|member| member.is("master"));
            let mut epochs: Vec<u64> = primaries.map(|member| member.epoch).collect();
            let count = epochs.len();
            epochs.sort_unstable();
            epochs.dedup();
            epochs.len() == count && epochs.last().is_none_or(|last| *last <= current_epoch(node))
        });
    }
}

/// Returns the highest epoch that a node knows.
fn current_epoch(node: &Server) -> u64 {
    let info = node.raw().call(&["CLUSTER", "INFO"]);
    let mut lines = info.text().lines().filter_map(|line| line.split_once(':'));
    let epoch = lines.find(|(name, _)| *name == "cluster_current_epoch").map(|(_, epoch)| epoch);
    epoch.and_then(|epoch| epoch.parse().ok()).expect("a node knows its epoch")
}

impl Migration<'_> {
    /// Returns the source.
    pub fn from(&self) -> &Server {
        self.from
    }

    /// Returns the target.
    pub fn to(&self) -> &Server {
        self.to
    }

    /// Moves up to `count` keys. Returns the number of keys found.
    ///
    /// # Panics
    /// If the move fails.
    pub fn move_keys(&mut self, count: usize) -> usize {
        let (slot, count) = (self.slot.to_string(), count.to_string());
        let keys = self.source.call(&["CLUSTER", "GETKEYSINSLOT", &slot, &count]);
        if keys.array().is_empty() {
            return 0;
        }
        let port = self.to.port().to_string();
        let words = ["MIGRATE", "127.0.0.1", &port, "", "0", "10000", "KEYS"].map(str::as_bytes);
        let words = words.into_iter().chain(keys.array().iter().map(Value::bytes));
        let moved = self.source.call(&words.collect::<Vec<_>>());
        // Keys may expire during the move.
        assert!(matches!(moved.text(), "OK" | "NOKEY"), "keys of slot {slot}");
        keys.array().len()
    }

    /// Moves the remaining keys, and announces the new owner to all primaries.
    ///
    /// # Panics
    /// If a primary refuses.
    pub fn finish(mut self) {
        while self.move_keys(KEYS_PER_COMMAND) > 0 {}
        self.cluster.wait_for_epochs(self.to);
        let ends = [self.to, self.from];
        let is_other = |node: &&Server| ends.iter().all(|end| end.port() != node.port());
        let others = self.cluster.nodes.iter().filter(is_other);
        let others = others.filter(|node| myself(node).is_some_and(|member| member.is("master")));
        let (slot, id) = (self.slot.to_string(), self.cluster.id(self.to));
        // The new owner first: a slot without an owner is worse than one with two.
        for node in ends.into_iter().chain(others) {
            ok(node, &["CLUSTER", "SETSLOT", &slot, "NODE", id]);
        }
    }
}

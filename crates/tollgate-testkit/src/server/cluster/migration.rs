//! A slot moves from one primary to another, in steps that a test can stop between.

use super::form::ok;
use super::{Cluster, myself};
use crate::server::{Raw, Server, Value};

/// Keys that are moved by one command.
const AT_ONCE: usize = 100;

/// A slot on its way: its keys are at the one or the other primary, and who asks the first for a key that
/// is not there is told to `ASK` the second. It stays so if this is dropped.
#[derive(Debug)]
#[must_use = "a slot stays on its way until `finish`"]
pub struct Migration<'a> {
    cluster: &'a Cluster,
    slot: u16,
    from: &'a Server,
    to: &'a Server,
    source: Raw,
}

impl Cluster {
    /// Opens a slot at both ends. Its keys stay where they are.
    ///
    /// # Panics
    /// If `to` is no primary, or has the slot.
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

    /// Moves slots one after another; those that are there already stay. Some hundred take seconds.
    pub fn reshard(&self, slots: impl IntoIterator<Item = u16>, to: &Server) {
        for slot in slots {
            if self.primary_of_slot(slot).port() != to.port() {
                self.migrate_slot(slot, to);
            }
        }
    }
}

impl Migration<'_> {
    /// Who gives the slot.
    pub fn from(&self) -> &Server {
        self.from
    }

    /// Who gets it.
    pub fn to(&self) -> &Server {
        self.to
    }

    /// Moves some keys, and tells how many there were to move.
    ///
    /// # Panics
    /// If they cannot be moved.
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
        // Keys may expire on the way.
        assert!(matches!(moved.text(), "OK" | "NOKEY"), "keys of slot {slot}");
        keys.array().len()
    }

    /// Moves what is left, and tells all primaries who has the slot now.
    ///
    /// # Panics
    /// If one of them refuses.
    pub fn finish(mut self) {
        while self.move_keys(AT_ONCE) > 0 {}
        let ends = [self.to, self.from];
        let is_other = |node: &&Server| ends.iter().all(|end| end.port() != node.port());
        let others = self.cluster.nodes.iter().filter(is_other);
        let others = others.filter(|node| myself(node).is_some_and(|own| own.is("master")));
        let (slot, id) = (self.slot.to_string(), self.cluster.id(self.to));
        // The new owner first: a slot that nobody has is worse than one that two have.
        for node in ends.into_iter().chain(others) {
            ok(node, &["CLUSTER", "SETSLOT", &slot, "NODE", id]);
        }
    }
}

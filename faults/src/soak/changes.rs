//! What changes during a soak: overrides, policies, and Redis.

use std::fs;

use serde_json::json;

use super::counted::Segments;
use super::system::{System, policy};
use crate::node::Node;
use crate::override_api::limits_of;

/// A policy is written at every so many changes of overrides.
const OVERRIDES_PER_POLICY: u64 = 4;

/// Clients with overrides at a time.
const OVERRIDDEN: u64 = 50;

/// Changes the system, and counts what it did.
pub(super) struct Changes<'a> {
    system: &'a System,
    segments: &'a Segments,
    done: Done,
}

/// The number of changes of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Done {
    /// Overrides that were set or removed.
    pub(super) overrides: u64,
    /// Policy files that were written.
    pub(super) policies: u64,
    /// Policy reloads that the nodes report, in all.
    pub(super) reloads: u64,
    /// Kills of Redis.
    pub(super) kills: u64,
    /// Times that a breaker opened, in all nodes.
    pub(super) breakers_opened: u64,
}

impl<'a> Changes<'a> {
    pub(super) fn new(system: &'a System, segments: &'a Segments) -> Self {
        Self { system, segments, done: Done::default() }
    }

    /// Sets one override and removes an older one, and sometimes writes another policy.
    pub(super) fn change(&mut self) {
        let number = self.done.overrides;
        for node in [&self.system.memory, &self.system.fleet[0]] {
            let limit = json!({ "limit": 50 + number % 50, "window_ms": 5000 });
            let body = json!({ "rule": "churn", "limits": [limit] }).to_string();
            change_override(node, "PUT", &override_path(number), &body);
            if let Some(older) = number.checked_sub(OVERRIDDEN) {
                change_override(node, "DELETE", &(override_path(older) + "?rule=churn"), "");
            }
        }
        self.done.overrides += 1;
        if self.done.overrides.is_multiple_of(OVERRIDES_PER_POLICY) {
            self.done.policies += 1;
            // Nodes also read a file that is being written, so it appears complete.
            let new = self.system.policy.with_extension("new");
            fs::write(&new, policy(self.done.policies)).expect("scratch files are writable");
            fs::rename(&new, &self.system.policy).expect("scratch files are writable");
        }
    }

    /// Kills Redis, which loses everything, and starts it again. The outage ends when Redis decides on all nodes.
    pub(super) fn kill_redis(&mut self) {
        self.segments.next();
        self.system.redis.kill();
        for node in self.system.fleet.iter() {
            node.wait_degraded();
        }
        self.system.redis.restart();
        for node in self.system.fleet.iter() {
            node.wait_exact();
        }
        self.done.kills += 1;
        self.segments.next();
    }

    /// Adds what the nodes report.
    pub(super) fn finish(mut self) -> Done {
        self.done.reloads = sum(self.system, r#"tollgate_policy_reloads_total{result="ok"}"#);
        let fleet_opened = self.system.fleet.iter().map(|node| node.metric(BREAKER_OPENED));
        self.done.breakers_opened = fleet_opened.map(whole).sum();
        self.done
    }
}

const BREAKER_OPENED: &str = "tollgate_breaker_opened_total";

fn sum(system: &System, series: &str) -> u64 {
    system.nodes().map(|node| whole(node.metric(series))).sum()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small counts")]
fn whole(value: f64) -> u64 {
    value as u64
}

fn override_path(number: u64) -> String {
    limits_of(&format!("o{number}"))
}

fn change_override(node: &Node, method: &str, path: &str, body: &str) {
    let reply = node.request(method, path, body);
    // A Redis that was killed has lost its overrides.
    let is_gone = reply.status == 404 && method == "DELETE";
    assert!(
        is_gone || [200, 204].contains(&reply.status),
        "{method}: {} {}",
        reply.status,
        reply.body
    );
}

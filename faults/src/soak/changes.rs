//! Changes during a soak: overrides, policies, and kills of Redis.

use std::fs;

use serde_json::json;
use tollgate_testkit::wait::eventually;

use super::counted::Segments;
use super::system::{FIRST_POLICY, System, policy};
use crate::node::Node;
use crate::override_api::limits_of;

/// The number of changes of overrides per change of the policy.
const OVERRIDES_PER_POLICY: u64 = 4;

/// Clients with overrides at a time.
const OVERRIDDEN: u64 = 50;

/// Changes the system, and counts the changes.
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

    /// Sets one override and removes an older one. The first change, and every fourth after it, also writes another policy.
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
        if number.is_multiple_of(OVERRIDES_PER_POLICY) {
            self.done.policies += 1;
            // Nodes also read a file that is being written, so it appears complete.
            let new = self.system.policy.with_extension("new");
            fs::write(&new, policy(FIRST_POLICY + self.done.policies))
                .expect("scratch files are writable");
            fs::rename(&new, &self.system.policy).expect("scratch files are writable");
        }
    }

    /// Kills Redis, which loses everything, and starts it again. The outage ends when Redis decides on all nodes.
    pub(super) fn kill_redis(&mut self) {
        let fleet = || self.system.fleet.iter();
        let opened_before: Vec<u64> = fleet().map(breakers_opened).collect();
        self.segments.next();
        self.system.redis.kill();
        for (node, before) in fleet().zip(opened_before) {
            eventually("the breaker opens", || {
                node.check("outage");
                breakers_opened(node) > before
            });
        }
        eventually("a counted client is admitted in the outage", || self.segments.has_admission());
        self.system.redis.restart();
        for node in self.system.fleet.iter() {
            node.wait_exact();
        }
        self.done.kills += 1;
        self.segments.next();
    }

    /// Adds the counts that the nodes report, when each has loaded a policy.
    pub(super) fn finish(mut self) -> Done {
        let reloads =
            |node: &Node| whole(node.metric(r#"tollgate_policy_reloads_total{result="ok"}"#));
        eventually("every node loads a policy", || {
            self.system.nodes().all(|node| reloads(node) > 0)
        });
        self.done.reloads = self.system.nodes().map(reloads).sum();
        self.done.breakers_opened = self.system.fleet.iter().map(breakers_opened).sum();
        self.done
    }
}

/// The number of times that the breaker of a node has opened.
fn breakers_opened(node: &Node) -> u64 {
    whole(node.metric("tollgate_breaker_opened_total"))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small counts")]
fn whole(value: f64) -> u64 {
    value as u64
}

fn override_path(number: u64) -> String {
    limits_of(&format!("o{number}"))
}

/// Changes an override. A node may respond with 503 just after an outage, so the change is retried.
fn change_override(node: &Node, method: &str, path: &str, body: &str) {
    let mut reply = node.request(method, path, body);
    eventually("a node accepts changes of overrides", || {
        if reply.status == 503 {
            reply = node.request(method, path, body);
        }
        reply.status != 503
    });
    // A Redis that was killed has lost its overrides.
    let is_gone = reply.status == 404 && method == "DELETE";
    assert!(
        is_gone || [200, 204].contains(&reply.status),
        "{method}: {} {}",
        reply.status,
        reply.body
    );
}

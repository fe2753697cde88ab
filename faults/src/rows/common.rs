//! What rows share.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tollgate_testkit::server::Server;

use crate::client::inline;
use crate::load::Load;
use crate::node::Node;
use crate::redis;
use crate::stage::Stage;

/// How long a store is waited for, unless a row says otherwise.
pub(super) const T: Duration = Duration::from_millis(100);

/// What a machine of two busy cores may add to any time.
pub(super) const SLACK: Duration = Duration::from_millis(500);

/// Two seconds are claimed for the way back to exact; a busy machine may take longer.
pub(super) const BACK: Duration = Duration::from_secs(10);

/// How often something is tried again that a busy machine has spoilt.
const TRIES: usize = 5;

/// What [`assert_exact`] counts to.
const FEW: usize = 50;

/// Plays something on a node that counts in memory, and on one that counts in Redis.
pub(super) fn on_both_stores(stage: &Stage, policy: &str, mut play: impl FnMut(&Node)) {
    play(&stage.node().policy(policy).start());
    let server = redis::start();
    play(&stage.node().policy(policy).redis(&redis::url(&server)).patient().start());
}

/// From clients that nobody knows exactly a limit is admitted, and by the store. Where a machine is so
/// slow that a node did without the store nothing is shown, and another client is taken.
pub(super) fn assert_exact(nodes: &[SocketAddr]) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let asked = u64::try_from(FEW + 10).expect("a number");
    for _ in 0..TRIES {
        let client = format!("fresh-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let question = inline(&client, 1, "fixed_window", FEW as u64);
        let tally = Load::closed(nodes.to_vec(), 2).asking(|_| question.clone()).ask(asked);
        if tally.degraded() == 0 {
            tally.assert_answered();
            assert_eq!(tally.admitted(), FEW, "of {asked} questions for {client}");
            return;
        }
    }
    panic!("the store is there, and {TRIES} times a node did without it");
}

/// Asserts that the way back did not take long, and tells how long.
pub(super) fn assert_back(took: Duration) -> String {
    assert!(took < BACK, "exact again only after {took:?}");
    format!("exact again after {}", crate::table::shown(took))
}

/// Asserts that a node never did without its store.
pub(super) fn assert_undisturbed(node: &Node) {
    let (errors, state) = (node.errors(), node.metric("tollgate_breaker_state"));
    assert!(errors == 0.0 && state == 0.0, "{errors} errors, breaker {state}\n{}", node.log());
}

/// How often a node's breaker opened.
pub(super) fn trips(node: &Node) -> f64 {
    node.metric("tollgate_breaker_opened_total")
}

/// Ends every connection that clients have.
pub(super) fn disconnect_all(server: &Server) {
    let mut raw = server.raw();
    raw.call(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
}

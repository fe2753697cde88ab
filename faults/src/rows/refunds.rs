//! Refunds whose reply is cut off: each is credited once, in Redis, and not on the node as well.

use tollgate_testkit::proxy::{Direction, Fault, Proxy};
use tollgate_testkit::wait::eventually;

use crate::client::inline;
use crate::node::Node;
use crate::redis;
use crate::stage::Stage;

const LIMIT: u64 = 10;
/// Taken in Redis.
const BEFORE: u64 = 6;
/// Taken on the node while Redis refuses calls.
const DURING: u64 = 4;
const REFUNDED: u64 = 3;
/// The usage after all, with every take and every refund counted once.
const SETTLED: u64 = BEFORE + DURING - REFUNDED;

pub(super) fn refund_with_lost_reply_is_credited_once(stage: &Stage) -> String {
    let server = redis::start();
    let proxy = Proxy::seeded(server.port(), 7);
    // The breaker stays closed: every call is sent.
    let setup = stage.node().redis(&redis::through(&proxy)).with("breaker-failures", "1000000");
    let node = setup.patient().start();
    node.wait_exact();
    let clients = stage.scale().pick(20, 1000);
    let lost = (0..clients).filter(|client| refund_with_cut_reply(&node, &proxy, *client)).count();
    assert!(lost > 0, "no reply to a refund was cut off, so nothing is proven");
    for client in 0..clients {
        let count = || node.count(&body(client, 0));
        eventually("Redis has the debits of the outage", || {
            count().is_some_and(|count| count >= SETTLED)
        });
        assert_eq!(count(), Some(SETTLED), "usage of client {client}");
        let takes = (0..LIMIT).map(|_| node.post("/check", body(client, 1)));
        let admitted = takes.filter(|reply| reply.is_exact() && reply.is_allowed()).count() as u64;
        assert_eq!(admitted, LIMIT - SETTLED, "client {client}: never above the limit");
    }
    format!(
        "{clients} refunds of {REFUNDED}, {lost} replies cut off; {SETTLED} of {LIMIT} used \
         afterwards, and {} more admitted, for every client",
        LIMIT - SETTLED
    )
}

fn body(client: u32, cost: u64) -> String {
    inline(&format!("client-{client}"), cost, "fixed_window", LIMIT)
}

/// Takes with Redis, then without, and refunds with a reply that is cut off. Returns whether the reply was lost; the
/// connection may be cut by another call instead.
fn refund_with_cut_reply(node: &Node, proxy: &Proxy, client: u32) -> bool {
    node.wait_exact();
    let shared = node.post("/check", body(client, BEFORE));
    assert!(shared.is_exact() && shared.is_allowed(), "{}", shared.body);
    // Proves that the take did not run.
    proxy.set(Fault::Answer(b"-LOADING Redis is loading the dataset in memory\r\n".to_vec()));
    let local = node.post("/check", body(client, DURING));
    assert!(local.is_degraded() && local.is_allowed(), "{}", local.body);
    // The refund runs, and its reply is lost.
    proxy.set(Fault::CutOpen { towards: Direction::Client, bytes: 0..1 });
    let refund = node.post("/refund", body(client, REFUNDED));
    assert_eq!(refund.status, 200, "{}", refund.body);
    proxy.set(Fault::Pass);
    refund.is_degraded()
}

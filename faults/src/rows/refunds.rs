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
/// The usage after all, if the refund never reached Redis.
const NOT_REFUNDED: u64 = BEFORE + DURING;
/// One client in this many, and at least one, may lose its refund: the reply to another call, such as a node report, can cut the connection
/// before the proxy has passed the refund on. The node cannot know that, and must not credit it.
const MAX_LOST: u32 = 50;

pub(super) fn refund_with_lost_reply_is_credited_once(stage: &Stage) -> String {
    let server = redis::start();
    let proxy = Proxy::seeded(server.port(), 7);
    // The breaker stays closed: every call is sent.
    let setup = stage.node().redis(&redis::through(&proxy)).with("breaker-failures", "1000000");
    let node = setup.patient().start();
    node.wait_exact();
    let clients = stage.scale().pick(20, 1000);
    let is_lost: Vec<bool> =
        (0..clients).map(|client| refund_with_cut_reply(&node, &proxy, client)).collect();
    let (lost, mut never_reached) = (is_lost.iter().filter(|lost| **lost).count(), 0);
    assert!(lost > 0, "no reply to a refund was cut off, so nothing is proven");
    for (client, is_lost) in (0..clients).zip(is_lost) {
        let count = || node.count(&body(client, 0));
        eventually("Redis has the debits of the outage", || {
            count().is_some_and(|count| count >= SETTLED)
        });
        let used = count().expect("Redis decides");
        let is_right = used == SETTLED || (is_lost && used == NOT_REFUNDED);
        assert!(is_right, "usage of client {client}: {used}, expected {SETTLED}");
        never_reached += u32::from(used == NOT_REFUNDED);
        let takes = (0..LIMIT).map(|_| node.post("/check", body(client, 1)));
        let admitted = takes.filter(|reply| reply.is_exact() && reply.is_allowed()).count() as u64;
        assert_eq!(admitted, LIMIT - used, "client {client}: never above the limit");
    }
    let max_lost = (clients / MAX_LOST).max(1);
    assert!(never_reached <= max_lost, "{never_reached} refunds never reached Redis");
    format!(
        "{clients} refunds of {REFUNDED}, {lost} replies cut off, {never_reached} cut before they reached Redis; \
         {SETTLED} of {LIMIT} used afterwards, and {} more admitted, for every other client",
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

//! Many nodes when their Redis is back.

use std::time::Duration;

use tollgate_testkit::proxy::Proxy;
use tollgate_testkit::server::Server;

use super::common::{assert_back, assert_exact};
use crate::client::key;
use crate::load::Load;
use crate::passage::pass;
use crate::policy::{Loss, each};
use crate::redis;
use crate::stage::Stage;

const NODES: u64 = 8;
/// The connections of a node: for decisions, and for what nodes tell each other.
const POOL: u64 = 2;
/// How long the load is looked at, before and after.
const SPAN: Duration = Duration::from_secs(3);

pub(super) fn eight_nodes_do_not_storm_a_redis_that_is_back(stage: &Stage) -> String {
    let server = redis::start();
    let proxy = Proxy::start(server.port());
    let setup = stage.node().redis(&redis::through(&proxy)).policy(&each("1000000/h", Loss::Local));
    // Heartbeats as they are by themselves: they ask too.
    let nodes: Vec<_> = {
        let setup = setup.with("redis-timeout-ms", "1000");
        (0..NODES).map(|_| setup.start()).collect()
    };
    let addresses: Vec<_> = nodes.iter().map(crate::node::Node::address).collect();
    let load =
        Load::open(addresses.clone(), 160).asking(|number| key(&format!("c{}", number % 40)));
    let seconds = stage.scale().pick(4, 30);
    let (mut usual, mut after, mut connects, mut back) = (0, 0, 0, Duration::ZERO);
    let tally = load.during(|| {
        pass(Duration::from_secs(1));
        usual = commands(&server, || pass(SPAN));
        server.kill();
        pass(Duration::from_secs(1));
        let before = proxy.connections();
        pass(Duration::from_secs(seconds));
        connects = proxy.connections() - before;
        server.restart();
        after = commands(&server, || {
            back = nodes.iter().map(crate::node::Node::wait_exact).sum();
            pass(SPAN.saturating_sub(back));
        });
    });
    tally.assert_answered();
    assert_exact(&addresses);
    let clients = redis::info(&server, "connected_clients");
    // One of them asks.
    assert!(clients <= NODES * POOL + 1, "{clients} connections");
    // In each second a probe, a heartbeat that failed, and the connection for what nodes tell each other.
    let bound = NODES * (seconds + 1) * 3;
    assert!(connects <= bound, "{connects} connections in {seconds} s without Redis");
    // Each greets, teaches its programs, debits and says that it is up.
    let bound = usual + usual / 5 + NODES * 60;
    assert!(after <= bound, "{after} commands after, {usual} before");
    format!(
        "{} answers, no 5xx; {connects} connects in {seconds} s away, {clients} connections after; {usual} \
         commands in 3 s before, {after} in the first after; {}",
        tally.count(),
        assert_back(back)
    )
}

/// How many commands a server ran meanwhile.
fn commands(server: &Server, meanwhile: impl FnOnce()) -> u64 {
    let before = redis::info(server, "total_commands_processed");
    meanwhile();
    redis::info(server, "total_commands_processed") - before
}

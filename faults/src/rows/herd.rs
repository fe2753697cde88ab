//! Many nodes when their Redis is back.

use std::time::Duration;

use tollgate_testkit::proxy::Proxy;
use tollgate_testkit::server::Server;

use super::common::{assert_exact, assert_recovered};
use crate::client::key;
use crate::load::Load;
use crate::node::Node;
use crate::policy::{Loss, per_client};
use crate::redis;
use crate::stage::Stage;
use crate::waiting::wait_for;

const NODES: u64 = 8;
/// The connections of a node: for decisions, and for what nodes tell each other.
const POOL: u64 = 2;
/// How long the load is looked at, before and after.
const SPAN: Duration = Duration::from_secs(3);

/// What Redis saw of it.
#[derive(Debug, Default)]
struct Traffic {
    /// Commands in a span, before and from the return on.
    usual: u64,
    after: u64,
    /// Connections that were tried while it was away.
    connects: u64,
    back: Duration,
}

pub(super) fn eight_nodes_do_not_storm_a_recovered_redis(stage: &Stage) -> String {
    let server = redis::start();
    let proxy = Proxy::start(server.port());
    // Heartbeats as they are by themselves: they ask too.
    let setup =
        stage.node().redis(&redis::through(&proxy)).policy(&per_client("1000000/h", Loss::Local));
    let setup = setup.with("redis-timeout-ms", "1000");
    let nodes: Vec<Node> = (0..NODES).map(|_| setup.start()).collect();
    let addresses: Vec<_> = nodes.iter().map(Node::address).collect();
    let load = Load::open(addresses.clone(), 160).body(|number| key(&format!("c{}", number % 40)));
    let (seconds, mut traffic) = (stage.scale().pick(4, 30), Traffic::default());
    let tally = load.during(|| traffic = take_away(&server, &proxy, &nodes, seconds));
    tally.assert_answered();
    assert_exact(&addresses);
    let clients = redis::info(&server, "connected_clients");
    // One of them asks.
    assert!(clients <= NODES * POOL + 1, "{clients} connections");
    let Traffic { usual, after, connects, back } = traffic;
    // In each second a probe, a heartbeat that failed, and the connection for what nodes tell each other.
    let bound = NODES * (seconds + 1) * 4;
    assert!(connects <= bound, "{connects} connections in {seconds} s without Redis");
    // Each greets, teaches its programs, debits and says that it is up.
    let bound = usual + usual / 5 + NODES * 60;
    assert!(after <= bound, "{after} commands after, {usual} before");
    format!(
        "{} answers, no 5xx; {:.1} connects a node and second while away, {clients} connections after; {usual} \
         commands in 3 s before, {after} in the first after; {}",
        tally.count(),
        rate(connects, NODES * seconds),
        assert_recovered(back)
    )
}

/// Kills Redis for so many seconds, while nodes are asked.
fn take_away(server: &Server, proxy: &Proxy, nodes: &[Node], seconds: u64) -> Traffic {
    let mut traffic = Traffic::default();
    wait_for(Duration::from_secs(1));
    traffic.usual = commands(server, || wait_for(SPAN));
    server.kill();
    wait_for(Duration::from_secs(1));
    let before = proxy.connections();
    wait_for(Duration::from_secs(seconds));
    traffic.connects = proxy.connections() - before;
    server.restart();
    traffic.after = commands(server, || {
        traffic.back = nodes.iter().map(Node::wait_exact).sum();
        wait_for(SPAN.saturating_sub(traffic.back));
    });
    traffic
}

fn rate(count: u64, of: u64) -> f64 {
    let small = |number| f64::from(u32::try_from(number).expect("a small number"));
    small(count) / small(of)
}

/// How many commands a server ran meanwhile.
fn commands(server: &Server, meanwhile: impl FnOnce()) -> u64 {
    let before = redis::info(server, "total_commands_processed");
    meanwhile();
    redis::info(server, "total_commands_processed") - before
}

//! Load on Redis when it recovers and many nodes reconnect.

use std::time::Duration;

use tollgate_testkit::proxy::Proxy;
use tollgate_testkit::server::Server;
use tollgate_testkit::wait::eventually;

use super::common::{assert_exact, check_recovery};
use crate::client::key;
use crate::load::Load;
use crate::node::Node;
use crate::policy::{Loss, per_client};
use crate::redis;
use crate::stage::Stage;
use crate::waiting::wait_for;

const NODES: u64 = 8;
/// Connections per node: one for decisions and node reports, one for change events.
const CONNECTIONS_PER_NODE: u64 = 2;
/// The time in which commands are counted, before and after the outage.
const SPAN: Duration = Duration::from_secs(3);

/// The load on Redis.
#[derive(Debug, Default)]
struct Traffic {
    /// Commands in one span before the outage.
    before: u64,
    /// Commands in the first span after the outage.
    after: u64,
    /// Connection attempts during the outage.
    connects: u64,
    recovery: Duration,
}

pub(super) fn eight_nodes_do_not_storm_a_recovered_redis(stage: &Stage) -> String {
    let server = redis::start();
    let proxy = Proxy::start(server.port());
    // The default report interval, because reports are load too.
    let setup =
        stage.node().redis(&redis::through(&proxy)).policy(&per_client("1000000/h", Loss::Local));
    let setup = setup.with("redis-timeout-ms", "1000");
    let nodes: Vec<Node> = (0..NODES).map(|_| setup.start()).collect();
    let addresses: Vec<_> = nodes.iter().map(Node::address).collect();
    let load = Load::open(addresses.clone(), 160).body(|number| key(&format!("c{}", number % 40)));
    let (seconds, mut traffic) = (stage.scale().pick(4, 30), Traffic::default());
    let tally = load.during(|| traffic = run_outage(&server, &proxy, &nodes, seconds));
    tally.assert_answered(stage);
    assert!(tally.degraded() > 0, "Redis decided all requests");
    assert!(traffic.connects > 0, "no node tried to connect during the outage");
    assert_exact(stage, &addresses);
    // One more is the connection of this test. Connections that a slow machine replaced may still be closing.
    let max = NODES * CONNECTIONS_PER_NODE + 1;
    let connected = || redis::info(&server, "connected_clients");
    eventually("the nodes have two connections each", || connected() <= max);
    let clients = connected();
    let Traffic { before, after, connects, recovery } = traffic;
    // Per second: a probe, a failed report, and the connection for change events.
    let bound = NODES * (seconds + 1) * 4;
    stage.check_time(connects <= bound, || {
        format!("{connects} connections in {seconds} s without Redis")
    });
    // Each node authenticates, loads its scripts, sends debits and registers.
    let bound = before + before / 5 + NODES * 60;
    stage.check_time(after <= bound, || format!("{after} commands after, {before} before"));
    format!(
        "{} answers, no 5xx; {:.1} connects per node and second during the outage, {clients} connections after; \
         {before} commands in 3 s before, {after} in the first 3 s after; {}",
        tally.count(),
        rate(connects, NODES * seconds),
        check_recovery(stage, recovery)
    )
}

/// Kills Redis for `seconds` under load, and measures the load on it.
fn run_outage(server: &Server, proxy: &Proxy, nodes: &[Node], seconds: u64) -> Traffic {
    let mut traffic = Traffic::default();
    wait_for(Duration::from_secs(1));
    traffic.before = commands(server, || wait_for(SPAN));
    server.kill();
    wait_for(Duration::from_secs(1));
    let connections = proxy.connections();
    wait_for(Duration::from_secs(seconds));
    traffic.connects = proxy.connections() - connections;
    server.restart();
    traffic.after = commands(server, || {
        traffic.recovery = nodes.iter().map(Node::wait_exact).sum();
        wait_for(SPAN.saturating_sub(traffic.recovery));
    });
    traffic
}

fn rate(count: u64, units: u64) -> f64 {
    let small = |number| f64::from(u32::try_from(number).expect("a small number"));
    small(count) / small(units)
}

/// The number of commands that a server ran during `action`.
fn commands(server: &Server, action: impl FnOnce()) -> u64 {
    let before = redis::info(server, "total_commands_processed");
    action();
    redis::info(server, "total_commands_processed") - before
}

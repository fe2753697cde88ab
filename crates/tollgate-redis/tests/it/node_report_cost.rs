//! The cost of node reports does not depend on the number of nodes.
//!
//! `TOLLGATE_REPORTS=60000 cargo test -p tollgate-redis --all-features --test redis_store node_report_cost -- --nocapture`
//! sends that many reports of 1,000 nodes, and prints the CPU time and the memory that they take in Redis.

use std::collections::BTreeMap;
use std::env;
use std::time::Duration;

use tollgate::Timestamp;
use tollgate_redis::{Directory, NodeRecord, OutgoingFigures, OutgoingInterval, OutgoingReport};
use tollgate_testkit::process_stats;
use tollgate_testkit::server::{Flavor, Server};

use crate::fixture::{block_on, builder, in_order, prefix};

/// Reports that are in flight together.
const TOGETHER: usize = 50;

fn record(node: usize) -> NodeRecord {
    let (id, address) = (format!("node-{node:04}.internal"), format!("10.1.0.{node}:8080"));
    NodeRecord { id, address, registered_at: Timestamp::from_micros(7_000_000) }
}

/// Counts of two rules, in an interval of each resolution, as a node sends them.
fn history(second: u64) -> Vec<OutgoingInterval> {
    let interval = |length: u64, keep: u64| OutgoingInterval {
        length: Duration::from_secs(length),
        start: Timestamp::from_micros(second / length * length * 1_000_000),
        keep: Duration::from_secs(keep),
        counts: ["", "api", "login"].map(|name| (name.to_owned(), vec![1000, 20])).to_vec(),
    };
    vec![interval(10, 3600), interval(300, 86_400)]
}

/// Sends one report of each node, as the service does every second.
fn report_all(directory: &Directory, nodes: usize, second: u64) {
    let texts = ["figures", "state"].map(|name| format!("{{\"{name}\":\"{}\"}}", "x".repeat(400)));
    let (records, history): (Vec<_>, _) = ((0..nodes).map(record).collect(), history(second));
    let report = |node| async move { directory.report(node).await.unwrap() };
    let reports: Vec<OutgoingReport<'_>> = records
        .iter()
        .map(|node| OutgoingReport {
            node,
            lifetime: Duration::from_secs(30),
            events: &[],
            figures: Some(OutgoingFigures {
                number: second,
                figures: &texts[0],
                history: &history,
                state: &texts[1],
                state_lifetime: Duration::from_secs(10),
            }),
        })
        .collect();
    for part in reports.chunks(TOGETHER) {
        block_on(in_order(part.iter().map(report)));
    }
}

/// Returns the number of calls of each command so far, also of scripts.
fn command_counts(server: &Server) -> BTreeMap<String, u64> {
    let info = server.raw().call(&["INFO", "commandstats"]);
    let count = |line: &str| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        Some((name.to_owned(), rest.split(',').next()?.parse().ok()?))
    };
    info.text().lines().filter_map(count).filter(|(name, _)| name != "info").collect()
}

/// Returns the commands per report of a fleet, in hundredths. All its nodes have reported before.
fn commands_per_report(nodes: usize) -> BTreeMap<String, u64> {
    let server = Server::start(Flavor::Redis);
    let directory = builder(&server).prefix(prefix()).unwrap().build().directory();
    report_all(&directory, nodes, 1000);
    let before = command_counts(&server);
    report_all(&directory, nodes, 1001);
    let mut counts = command_counts(&server);
    for (name, count) in &mut counts {
        *count = (*count - before.get(name).unwrap_or(&0)) * 100 / nodes as u64;
    }
    counts.retain(|_, count| *count >= 50);
    counts
}

#[test]
fn a_report_runs_the_same_commands_in_a_fleet_of_any_size() {
    let (few, many) = (commands_per_report(10), commands_per_report(500));
    assert!(many.len() >= 5, "{many:?}");
    assert_eq!(few, many);
}

#[test]
fn a_thousand_nodes_report() {
    let reports: u64 = env::var("TOLLGATE_REPORTS").map_or(2000, |text| text.parse().unwrap());
    let (nodes, seconds) = (1000, reports.div_ceil(1000).max(2));
    let server = Server::start(Flavor::Redis);
    let directory = builder(&server).prefix(prefix()).unwrap().build().directory();
    report_all(&directory, nodes, 1000);
    let used_memory = || {
        let info = server.raw().call(&["INFO", "memory"]);
        let line = info.text().lines().find_map(|line| line.strip_prefix("used_memory:"));
        line.unwrap().parse::<u64>().unwrap()
    };
    let (cpu, memory) = (process_stats::cpu(server.pid()), used_memory());
    (1..=seconds).for_each(|second| report_all(&directory, nodes, 1000 + second));
    let cpu = process_stats::cpu(server.pid()) - cpu;
    let sent = seconds * nodes as u64;
    println!(
        "{sent} reports of {nodes} nodes: {:.1} µs of Redis CPU and {} bytes of Redis memory each",
        (cpu / u32::try_from(sent).unwrap()).as_secs_f64() * 1e6,
        (used_memory() - memory) / sent,
    );
    let listed = block_on(directory.nodes()).unwrap();
    assert_eq!(listed.len(), nodes);
    let reply = block_on(directory.report(&OutgoingReport {
        node: &record(0),
        lifetime: Duration::from_secs(30),
        events: &[],
        figures: None,
    }));
    assert_eq!(reply.unwrap().up, 1000);
}

//! `INFO`: describes the server, in the format that clients of Redis parse.

use std::time::Instant;

use super::commands::REDIS_VERSION;
use super::decode::Arguments;
use super::encode::Replies;

/// Runs `INFO [section …]`.
pub(super) fn run(arguments: &Arguments<'_>, started: Instant, replies: &mut Replies) {
    let is_all = |wanted: &[u8]| {
        ["all", "default", "everything"]
            .iter()
            .any(|all| wanted.eq_ignore_ascii_case(all.as_bytes()))
    };
    let is_wanted = |section: &str| {
        let is_this =
            |wanted: &[u8]| is_all(wanted) || wanted.eq_ignore_ascii_case(section.as_bytes());
        arguments.len() == 1 || arguments.from(1).any(is_this)
    };
    let sections = sections(started);
    let wanted = sections.iter().filter(|(name, _)| is_wanted(name));
    let texts: Vec<String> = wanted.map(|(name, fields)| section(name, fields)).collect();
    replies.verbatim(&texts.join("\r\n"));
}

type Section = (&'static str, Vec<(&'static str, String)>);

fn sections(started: Instant) -> [Section; 6] {
    let text = |text: &str| text.to_owned();
    let uptime = started.elapsed().as_secs();
    let server = vec![
        ("redis_version", text(REDIS_VERSION)),
        ("redis_mode", text("standalone")),
        ("tollgate_version", text(env!("CARGO_PKG_VERSION"))),
        ("os", text(std::env::consts::OS)),
        ("arch_bits", usize::BITS.to_string()),
        ("process_id", std::process::id().to_string()),
        ("uptime_in_seconds", uptime.to_string()),
        ("uptime_in_days", (uptime / 86_400).to_string()),
    ];
    [
        ("Server", server),
        ("Clients", vec![("blocked_clients", text("0"))]),
        ("Persistence", vec![("loading", text("0"))]),
        ("Replication", vec![("role", text("master")), ("connected_slaves", text("0"))]),
        ("Cluster", vec![("cluster_enabled", text("0"))]),
        ("Keyspace", Vec::new()),
    ]
}

fn section(name: &str, fields: &[(&str, String)]) -> String {
    let lines = fields.iter().map(|(name, value)| format!("{name}:{value}\r\n"));
    format!("# {name}\r\n{}", lines.collect::<String>())
}

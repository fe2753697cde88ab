//! The suggested policy as YAML.

use std::fmt::Write as _;

use tollgate::Algorithm;

use super::super::suggestion::{ONE_PER_MILLE, Suggestion};
use super::super::text::{counted, percent};
use super::peaks::{Peaks, Percentiles};
use super::routes::Route;

/// Returns a policy with the rules of all routes, whose limits only start the curves.
pub(super) fn draft(routes: &[Route]) -> String {
    let mut out = "version: 1\nrules:\n".to_owned();
    for route in routes {
        write_rule(&mut out, route, "1/min");
    }
    out
}

/// Returns the policy with the limits of the suggestions, which are in the order of the routes.
pub(super) fn policy(routes: &[Route], suggestions: &[Suggestion], peaks: &[Peaks]) -> String {
    let mut out = "\
# Suggested by `tollgate policy suggest` from past traffic. All rules are in shadow mode: they count and never refuse.
# Compare with new traffic (`tollgate replay`, /metrics), then set `mode: enforce` rule by rule.
version: 1
rules:
"
    .to_owned();
    for ((route, suggestion), peaks) in routes.iter().zip(suggestions).zip(peaks) {
        let percentiles = peaks.percentiles();
        let (limit, refused) = limit(suggestion, &percentiles);
        let Percentiles { clients, median, p99, max } = percentiles;
        if suggestion.requests == 0 {
            let _ = writeln!(out, "  # No requests in the log; the limit is a guess.");
        } else {
            let clients = counted(u64::try_from(clients).unwrap_or(u64::MAX), "client");
            let requests = counted(suggestion.requests, "request");
            let _ = writeln!(out, "  # {requests} by {clients}.");
            let _ = writeln!(
                out,
                "  # Busiest minute of a client: median {median}, 99 % of clients at most {p99}, maximum {max}."
            );
            let _ = writeln!(out, "  # {limit} would have refused {refused} of these requests.");
        }
        write_rule(&mut out, route, &limit);
    }
    out
}

fn write_rule(out: &mut String, route: &Route, limit: &str) {
    // Quoted, because YAML reads names such as null, true or .inf as other types.
    let _ = writeln!(out, "  - name: \"{}\"", route.name);
    if let Some(pattern) = &route.pattern {
        let _ = writeln!(out, "    match: {{ path: \"{pattern}\" }}");
    }
    let _ = writeln!(out, "    per: [client]\n    limits: [{limit}]\n    mode: shadow");
}

/// Returns the limit of a route, and the share of requests that it would have refused.
fn limit(suggestion: &Suggestion, percentiles: &Percentiles) -> (String, String) {
    match suggestion.smallest(ONE_PER_MILLE) {
        Some(count) => {
            let round = round_up(count);
            // No curve point at the round count: the next smaller one refuses at least as much.
            let point = suggestion.points.iter().rev().find(|point| point.count <= round);
            let refused = point.map_or(0, |point| point.refused);
            (format!("{round}/min"), format!("at most {}", percent(refused, suggestion.requests)))
        }
        None if suggestion.requests == 0 => ("100/min".to_owned(), String::new()),
        // More than a sliding window can count. Two neighbouring minutes have at most twice the maximum, so a bucket of
        // that size and rate is never empty.
        None => {
            let round = round_up(percentiles.max.saturating_mul(2));
            let algorithm = Algorithm::TokenBucket;
            (format!("{{ rate: {round}/min, algorithm: {algorithm} }}"), "0.00 %".to_owned())
        }
    }
}

/// Returns a round number that is at least `count`.
fn round_up(count: u64) -> u64 {
    let mut unit: u64 = 1;
    loop {
        for tenths in [10, 15, 20, 30, 40, 50, 60, 80] {
            let round = unit.saturating_mul(tenths) / 10;
            if round >= count && round * 10 == unit.saturating_mul(tenths) {
                return round;
            }
        }
        if unit > u64::MAX / 100 {
            return count;
        }
        unit *= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_round() {
        assert_eq!([1, 2, 7, 11, 15, 99, 101, 390].map(round_up), [1, 2, 8, 15, 15, 100, 150, 400]);
        assert_eq!(round_up(u64::MAX), u64::MAX);
    }
}

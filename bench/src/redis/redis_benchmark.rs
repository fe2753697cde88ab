//! Throughput of Redis itself, measured with `redis-benchmark`.

use super::deployment::Deployment;
use super::runner::Runner;
use super::scale::Scale;
use crate::Outcome;
use crate::markdown::Table;
use crate::rounds::Rounds;

/// Number of connections, the default of `redis-benchmark`.
const CONNECTIONS: u32 = 50;

/// Commands in flight per connection in pipelined runs.
const PIPELINE: u32 = 16;

/// The measured commands with their labels.
const COMMANDS: [(&str, &[&str]); 4] = [
    ("GET", &["GET", "floor:__rand_int__"]),
    ("SET PX", &["SET", "floor:__rand_int__", "1794796463000000", "PX", "600000"]),
    ("EVAL \"return 1\"", &["EVAL", "return 1", "0"]),
    ("EVALSHA of return 1", &["EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0"]),
];

/// Figures of one command.
#[derive(Debug, Clone)]
pub struct Row {
    name: &'static str,
    pipeline: u32,
    /// Commands per second.
    pub per_second: Rounds,
    /// CPU time of Redis per command, in microseconds.
    pub redis_micros: Rounds,
}

/// One run of `redis-benchmark`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run<'c> {
    pub(super) command: &'c [&'c str],
    pub(super) connections: u32,
    pub(super) pipeline: u32,
    pub(super) requests: u32,
    /// Random key numbers are below this.
    pub(super) keys: u32,
}

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BenchmarkResult {
    pub(super) per_second: f64,
    /// Median latency in microseconds.
    pub(super) p50: f64,
    pub(super) redis_micros: f64,
}

impl Run<'_> {
    /// # Errors
    /// Redis returned an error, or did not execute all requests.
    pub(super) fn take(&self, deployment: &Deployment) -> Outcome<BenchmarkResult> {
        let [connections, pipeline, requests, keys] =
            [self.connections, self.pipeline, self.requests, self.keys]
                .map(|number| number.to_string());
        let options = ["-c", &connections, "-P", &pipeline, "-n", &requests, "-r", &keys, "--csv"];
        let arguments: Vec<&str> =
            options.into_iter().chain(self.command.iter().copied()).collect();
        let mut admin = deployment.admin()?;
        let before = (admin.commands()?, admin.errors()?);
        let (output, seconds) = deployment.benchmark(&arguments)?;
        let (commands, errors) = (admin.commands()? - before.0, admin.errors()? - before.1);
        if errors > 0.0 || commands < f64::from(self.requests) {
            return Err(format!("{:?}: {commands} commands, {errors} errors", self.command).into());
        }
        let [per_second, p50] = parse(&output).ok_or_else(|| format!("no figures in: {output}"))?;
        Ok(BenchmarkResult {
            per_second,
            p50,
            redis_micros: seconds * 1e6 / f64::from(self.requests),
        })
    }
}

/// Parses requests per second and the median latency in microseconds from the last line.
fn parse(csv: &str) -> Option<[f64; 2]> {
    let line = csv.lines().rfind(|line| line.starts_with('"'))?;
    // The command is the first field and may contain quotes and commas.
    let mut fields = line.trim_end_matches('"').rsplit("\",\"").map(str::parse::<f64>);
    let [_max, _p99, _p95, p50, _min, _average, per_second] =
        std::array::from_fn(|_| fields.next());
    Some([per_second?.ok()?, p50?.ok()? * 1000.0])
}

/// Measures all commands, with and without pipelining.
///
/// # Errors
/// Redis returned an error.
pub fn measure(runner: Runner<'_>) -> Outcome<Vec<Row>> {
    let Scale { rounds, keys, requests: [requests, more], .. } = *runner.scale;
    let of_pipeline = |pipeline| {
        let (per_second, redis_micros) = (Rounds::default(), Rounds::default());
        COMMANDS.map(|(name, _)| Row {
            name,
            pipeline,
            per_second: per_second.clone(),
            redis_micros: redis_micros.clone(),
        })
    };
    let mut rows: Vec<Row> = [1, PIPELINE].into_iter().flat_map(of_pipeline).collect();
    for _ in 0..rounds {
        for (row, (_, command)) in rows.iter_mut().zip(COMMANDS.iter().cycle()) {
            let requests = if row.pipeline == 1 { requests } else { requests * more };
            let (connections, pipeline) = (CONNECTIONS, row.pipeline);
            let result =
                Run { command, connections, pipeline, requests, keys }.take(runner.deployment)?;
            row.per_second.push(result.per_second);
            row.redis_micros.push(result.redis_micros);
        }
    }
    Ok(rows)
}

/// Returns the figures as a table.
#[must_use]
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        format!("redis-benchmark, {CONNECTIONS} connections"),
        "commands/s".to_owned(),
        "Redis CPU µs per command".to_owned(),
    ]);
    for Row { name, pipeline, per_second, redis_micros } in rows {
        let name = match pipeline {
            1 => (*name).to_owned(),
            _ => format!("{name}, pipelines of {pipeline}"),
        };
        table.push([name, per_second.to_string(), format!("{redis_micros:.2}")]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_figures_after_any_command() {
        let csv = "\"test\",\"rps\",\"avg_latency_ms\",\"min\",\"p50\",\"p95\",\"p99\",\"max\"\n\
                   \"EVAL return \",\" 1 0\",\"81.50\",\"0.020\",\"0.010\",\"0.031\",\"0.04\",\"0.05\",\"0.9\"\n";
        assert_eq!(parse(csv), Some([81.5, 31.0]));
        assert_eq!(parse(""), None);
    }
}

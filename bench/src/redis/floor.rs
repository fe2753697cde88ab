//! What Redis itself can do, by its own `redis-benchmark`.

use super::contest::Contest;
use super::scale::Scale;
use super::stage::Stage;
use crate::Outcome;
use crate::markdown::Table;
use crate::rounds::Rounds;

/// As many connections as `redis-benchmark` has unless it is told.
const CONNECTIONS: u32 = 50;

/// How many commands are under way on a connection that has a pipeline.
const PIPELINE: u32 = 16;

/// What is sent, in turn and with all the figures taken.
const COMMANDS: [(&str, &[&str]); 4] = [
    ("GET", &["GET", "floor:__rand_int__"]),
    ("SET PX", &["SET", "floor:__rand_int__", "1794796463000000", "PX", "600000"]),
    ("EVAL \"return 1\"", &["EVAL", "return 1", "0"]),
    ("EVALSHA of the same", &["EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0"]),
];

/// The figures of one command.
#[derive(Debug, Clone)]
pub struct Row {
    name: &'static str,
    pipeline: u32,
    /// Commands a second.
    pub per_second: Rounds,
    /// Microseconds of Redis's processor time for each.
    pub redis_micros: Rounds,
}

/// One run of `redis-benchmark`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run<'c> {
    pub(super) command: &'c [&'c str],
    pub(super) connections: u32,
    pub(super) pipeline: u32,
    pub(super) requests: u32,
    /// Keys are drawn below this.
    pub(super) keys: u32,
}

/// What came out of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Told {
    pub(super) per_second: f64,
    /// In microseconds.
    pub(super) p50: f64,
    pub(super) redis_micros: f64,
}

impl Run<'_> {
    /// # Errors
    /// An error that Redis answered, or none of the requests.
    pub(super) fn take(&self, stage: &Stage) -> Outcome<Told> {
        let [connections, pipeline, requests, keys] =
            [self.connections, self.pipeline, self.requests, self.keys]
                .map(|number| number.to_string());
        let options = ["-c", &connections, "-P", &pipeline, "-n", &requests, "-r", &keys, "--csv"];
        let arguments: Vec<&str> =
            options.into_iter().chain(self.command.iter().copied()).collect();
        let mut inside = stage.inside()?;
        let before = (inside.commands()?, inside.errors()?);
        let (said, seconds) = stage.benchmark(&arguments)?;
        let (commands, errors) = (inside.commands()? - before.0, inside.errors()? - before.1);
        if errors > 0.0 || commands < f64::from(self.requests) {
            return Err(format!("{:?}: {commands} commands, {errors} errors", self.command).into());
        }
        let [per_second, p50] = parse(&said).ok_or_else(|| format!("no figures in: {said}"))?;
        Ok(Told { per_second, p50, redis_micros: seconds * 1e6 / f64::from(self.requests) })
    }
}

/// Requests a second and the median in microseconds, from the last line.
fn parse(csv: &str) -> Option<[f64; 2]> {
    let line = csv.lines().rfind(|line| line.starts_with('"'))?;
    // The command comes first and may hold anything.
    let mut fields = line.trim_end_matches('"').rsplit("\",\"").map(str::parse::<f64>);
    let [_max, _p99, _p95, p50, _min, _average, per_second] =
        std::array::from_fn(|_| fields.next());
    Some([per_second?.ok()?, p50?.ok()? * 1000.0])
}

/// Takes the figures of all commands, without a pipeline and with one.
///
/// # Errors
/// An error that Redis answered.
pub fn measure(contest: Contest<'_>) -> Outcome<Vec<Row>> {
    let Scale { rounds, keys, requests: [requests, more], .. } = *contest.scale;
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
            let told =
                Run { command, connections, pipeline, requests, keys }.take(contest.stage)?;
            row.per_second.push(told.per_second);
            row.redis_micros.push(told.redis_micros);
        }
    }
    Ok(rows)
}

/// The figures as a table.
#[must_use]
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        format!("redis-benchmark, {CONNECTIONS} connections"),
        "commands/s".to_owned(),
        "Redis CPU µs a command".to_owned(),
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
    fn figures_are_found_behind_any_command() {
        let csv = "\"test\",\"rps\",\"avg_latency_ms\",\"min\",\"p50\",\"p95\",\"p99\",\"max\"\n\
                   \"EVAL return \",\" 1 0\",\"81.50\",\"0.020\",\"0.010\",\"0.031\",\"0.04\",\"0.05\",\"0.9\"\n";
        assert_eq!(parse(csv), Some([81.5, 31.0]));
        assert_eq!(parse(""), None);
    }
}

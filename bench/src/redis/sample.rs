//! Figures of one load run, and their text format.

use std::fmt;
use std::str::FromStr;

use crate::{Outcome, figure_lines};

/// Figures of one run; `per_second` and below refer to the measured window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Decisions in the whole run.
    pub answered: f64,
    /// Allowed decisions in the whole run.
    pub allowed: f64,
    /// Redis commands in the whole run, including those of scripts.
    pub commands: f64,
    /// Script and function calls in the whole run.
    pub script_calls: f64,
    /// Decisions per second.
    pub per_second: f64,
    /// Median latency in microseconds.
    pub p50: f64,
    /// 99th percentile of the latency in microseconds.
    pub p99: f64,
    /// CPU time of Redis per decision, in microseconds.
    pub redis_micros: f64,
    /// CPU time of the load generator per decision, in microseconds.
    pub client_micros: f64,
}

const NAMES: [&str; 9] = [
    "answered",
    "allowed",
    "commands",
    "script_calls",
    "per_second",
    "p50",
    "p99",
    "redis_micros",
    "client_micros",
];

/// One line per figure.
impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { answered, allowed, commands, script_calls, per_second, p50, p99, .. } = self;
        let figures = [
            answered,
            allowed,
            commands,
            script_calls,
            per_second,
            p50,
            p99,
            &self.redis_micros,
            &self.client_micros,
        ];
        figure_lines::write(f, &NAMES, figures)
    }
}

impl FromStr for Sample {
    type Err = Box<dyn std::error::Error + Send + Sync>;

    fn from_str(text: &str) -> Outcome<Self> {
        let [
            answered,
            allowed,
            commands,
            script_calls,
            per_second,
            p50,
            p99,
            redis_micros,
            client_micros,
        ] = figure_lines::read(&NAMES, text)?;
        Ok(Self {
            answered,
            allowed,
            commands,
            script_calls,
            per_second,
            p50,
            p99,
            redis_micros,
            client_micros,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_text_round_trips() {
        let sample = Sample {
            answered: 600_123.0,
            allowed: 600_000.0,
            commands: 1_800_369.0,
            script_calls: 20_017.0,
            per_second: 98_765.4,
            p50: 450.5,
            p99: 900.0,
            redis_micros: 4.2,
            client_micros: 3.1,
        };
        assert_eq!(sample.to_string().parse::<Sample>().unwrap(), sample);
    }

    #[test]
    fn error_names_the_missing_figure() {
        let error = "answered 1\np50 2\n".parse::<Sample>().unwrap_err();
        assert!(error.to_string().starts_with("no allowed in: "), "{error}");
    }
}

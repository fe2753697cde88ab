//! What one run of the load on Redis saw, and how it tells.

use std::fmt;
use std::str::FromStr;

use crate::{Outcome, lines};

/// The figures of one run; from `per_second` on, those of the window that counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Decisions of the whole run, counted or not.
    pub answered: f64,
    /// How many of them let a request pass.
    pub allowed: f64,
    /// Commands that Redis did for the whole run, those of scripts included.
    pub commands: f64,
    /// Decisions a second.
    pub per_second: f64,
    /// What half of the decisions took at most, in microseconds.
    pub p50: f64,
    /// The same for 99 %.
    pub p99: f64,
    /// Microseconds of Redis's processor time per decision.
    pub redis_micros: f64,
    /// The same of the process that asks.
    pub client_micros: f64,
}

const NAMES: [&str; 8] = [
    "answered",
    "allowed",
    "commands",
    "per_second",
    "p50",
    "p99",
    "redis_micros",
    "client_micros",
];

/// A line per figure.
impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { answered, allowed, commands, per_second, p50, p99, redis_micros, client_micros } =
            self;
        let figures =
            [answered, allowed, commands, per_second, p50, p99, redis_micros, client_micros];
        lines::write(f, &NAMES, figures)
    }
}

impl FromStr for Sample {
    type Err = Box<dyn std::error::Error + Send + Sync>;

    fn from_str(text: &str) -> Outcome<Self> {
        let [answered, allowed, commands, per_second, p50, p99, redis_micros, client_micros] =
            lines::read(&NAMES, text)?;
        Ok(Self { answered, allowed, commands, per_second, p50, p99, redis_micros, client_micros })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_read_as_it_was_written() {
        let sample = Sample {
            answered: 600_123.0,
            allowed: 600_000.0,
            commands: 1_800_369.0,
            per_second: 98_765.4,
            p50: 450.5,
            p99: 900.0,
            redis_micros: 4.2,
            client_micros: 3.1,
        };
        assert_eq!(sample.to_string().parse::<Sample>().unwrap(), sample);
    }

    #[test]
    fn a_missing_figure_is_named() {
        let error = "answered 1\np50 2\n".parse::<Sample>().unwrap_err();
        assert!(error.to_string().starts_with("no allowed in: "), "{error}");
    }
}

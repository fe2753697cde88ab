//! Figures of one load run, and their text format.

use std::fmt;
use std::str::FromStr;

use crate::{Outcome, figure_lines};

/// Figures of one run; `per_second` and below refer to the measured window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Responses in the whole run.
    pub answered: f64,
    /// Length of the last response without its framing, in bytes.
    pub payload_bytes: f64,
    /// Responses per second.
    pub per_second: f64,
    /// Median latency in microseconds.
    pub p50: f64,
    /// 99th percentile of the latency in microseconds.
    pub p99: f64,
    /// 99.9th percentile of the latency in microseconds.
    pub p999: f64,
    /// CPU time of the server per response, in microseconds.
    pub server_micros: f64,
    /// Share of one core that the server used.
    pub server_share: f64,
    /// Share of one core that the load generator used.
    pub load_share: f64,
}

const NAMES: [&str; 9] = [
    "answered",
    "payload_bytes",
    "per_second",
    "p50",
    "p99",
    "p999",
    "server_micros",
    "server_share",
    "load_share",
];

/// One line per figure.
impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { answered, payload_bytes, per_second, p50, p99, p999, .. } = self;
        let Self { server_micros, server_share, load_share, .. } = self;
        let figures = [
            answered,
            payload_bytes,
            per_second,
            p50,
            p99,
            p999,
            server_micros,
            server_share,
            load_share,
        ];
        figure_lines::write(f, &NAMES, figures)
    }
}

impl FromStr for Sample {
    type Err = Box<dyn std::error::Error + Send + Sync>;

    fn from_str(text: &str) -> Outcome<Self> {
        let [
            answered,
            payload_bytes,
            per_second,
            p50,
            p99,
            p999,
            server_micros,
            server_share,
            load_share,
        ] = figure_lines::read(&NAMES, text)?;
        Ok(Self {
            answered,
            payload_bytes,
            per_second,
            p50,
            p99,
            p999,
            server_micros,
            server_share,
            load_share,
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
            payload_bytes: 345.0,
            per_second: 98_765.4,
            p50: 450.5,
            p99: 900.0,
            p999: 1500.25,
            server_micros: 9.2,
            server_share: 0.99,
            load_share: 0.61,
        };
        assert_eq!(sample.to_string().parse::<Sample>().unwrap(), sample);
    }

    #[test]
    fn error_names_the_missing_figure() {
        let error = "answered 1\np50 2\n".parse::<Sample>().unwrap_err();
        assert!(error.to_string().starts_with("no payload_bytes in: "), "{error}");
    }
}

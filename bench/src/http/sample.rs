//! What one run of the load generator saw, and how it tells.

use std::fmt;
use std::str::FromStr;

use crate::{Outcome, lines};

/// The figures of one run; from `per_second` on, those of the window that counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Answers of the whole run, counted or not.
    pub answered: f64,
    /// The length of the last answer's body.
    pub body_bytes: f64,
    /// Answers a second.
    pub per_second: f64,
    /// What half of the answers took at most, in microseconds.
    pub p50: f64,
    /// The same for 99 %.
    pub p99: f64,
    /// The same for 99.9 %.
    pub p999: f64,
    /// Microseconds of the server's processor time per answer.
    pub server_micros: f64,
    /// The share of one processor that the load generator itself used.
    pub load_share: f64,
}

const NAMES: [&str; 8] =
    ["answered", "body_bytes", "per_second", "p50", "p99", "p999", "server_micros", "load_share"];

/// A line per figure.
impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { answered, body_bytes, per_second, p50, p99, p999, server_micros, load_share } =
            self;
        let figures = [answered, body_bytes, per_second, p50, p99, p999, server_micros, load_share];
        lines::write(f, &NAMES, figures)
    }
}

impl FromStr for Sample {
    type Err = Box<dyn std::error::Error + Send + Sync>;

    fn from_str(text: &str) -> Outcome<Self> {
        let [answered, body_bytes, per_second, p50, p99, p999, server_micros, load_share] =
            lines::read(&NAMES, text)?;
        Ok(Self { answered, body_bytes, per_second, p50, p99, p999, server_micros, load_share })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_read_as_it_was_written() {
        let sample = Sample {
            answered: 600_123.0,
            body_bytes: 345.0,
            per_second: 98_765.4,
            p50: 450.5,
            p99: 900.0,
            p999: 1500.25,
            server_micros: 9.2,
            load_share: 0.61,
        };
        assert_eq!(sample.to_string().parse::<Sample>().unwrap(), sample);
    }

    #[test]
    fn a_missing_figure_is_named() {
        let error = "answered 1\np50 2\n".parse::<Sample>().unwrap_err();
        assert!(error.to_string().starts_with("no body_bytes in: "), "{error}");
    }
}

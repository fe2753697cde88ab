//! Calls of outbound limiters.

use std::time::Duration;

use ::metrics::histogram;
use ::metrics::{Counter, Histogram, Unit, counter, describe_counter, describe_histogram};

use super::observer::registered;

const CALLS: &str = "tollgate_outbound_calls_total";
const WAIT: &str = "tollgate_outbound_wait_seconds";

/// The metrics of one outbound limiter.
#[derive(Debug)]
pub(crate) struct OutboundMetrics {
    acquired: Counter,
    refused: Counter,
    failed: Counter,
    wait: Histogram,
}

impl OutboundMetrics {
    /// Resolves the metrics of the limiter with this name.
    pub(crate) fn new(limiter: &str) -> Self {
        describe_counter!(CALLS, "Calls of an outbound limiter by result.");
        let help = "Time that admitted calls of an outbound limiter waited, in seconds.";
        describe_histogram!(WAIT, Unit::Seconds, help);
        let calls = |result| {
            registered(counter!(CALLS, "limiter" => limiter.to_owned(), "result" => result))
        };
        Self {
            acquired: calls("acquired"),
            refused: calls("refused"),
            failed: calls("error"),
            wait: histogram!(WAIT, "limiter" => limiter.to_owned()),
        }
    }

    pub(crate) fn record_acquired(&self, waited: Option<Duration>) {
        self.acquired.increment(1);
        if let Some(waited) = waited {
            self.wait.record(waited);
        }
    }

    pub(crate) fn record_refused(&self) {
        self.refused.increment(1);
    }

    pub(crate) fn record_failed(&self) {
        self.failed.increment(1);
    }
}

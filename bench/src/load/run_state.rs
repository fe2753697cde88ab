//! State of a load run: chooses requests and records responses within the window.

use std::time::{Duration, Instant};

use super::connection::Received;
use super::sample::Sample;
use super::task::Task;
use super::template::Numbers;
use crate::Outcome;
use crate::keys::Rng;
use crate::latencies::Latencies;
use crate::load_mode::LoadMode;
use crate::window::Window;

/// The state of a run.
#[derive(Debug)]
pub(super) struct RunState {
    task: Task,
    rng: Rng,
    /// The next unused key in [`LoadMode::Fill`].
    next_key: u32,
    window: Window,
    answered: u32,
    /// Length of the last response in bytes.
    payload_bytes: usize,
    latencies: Latencies,
}

impl RunState {
    pub(super) fn new(task: &Task) -> Outcome<Self> {
        // A fill is measured from its first request to its last.
        let (warm_up, length) = match task.mode {
            LoadMode::Fill => (Duration::ZERO, None),
            LoadMode::Timed { warm_up, window } => (warm_up, Some(window)),
        };
        Ok(Self {
            task: task.clone(),
            rng: Rng::new(u64::from(task.server)),
            next_key: 0,
            window: Window::begin(&[task.server], warm_up, length)?,
            answered: 0,
            payload_bytes: 0,
            latencies: Latencies::new()?,
        })
    }

    /// Opens or closes the window if the time has come.
    pub(super) fn update(&mut self, now: Instant) -> Outcome<()> {
        self.window.update(now)
    }

    /// Returns the next request, or `None` when the run is over.
    pub(super) fn next(&mut self) -> Option<Numbers> {
        let rule = self.rng.below(self.task.requests.rules);
        let key = match self.task.mode {
            LoadMode::Fill => {
                self.next_key += 1;
                self.next_key - 1
            }
            LoadMode::Timed { .. } => self.rng.below(self.task.requests.keys),
        };
        let over = match self.task.mode {
            LoadMode::Fill => key >= self.task.requests.keys,
            LoadMode::Timed { .. } => self.window.span().is_some(),
        };
        (!over).then_some(Numbers { key, rule })
    }

    /// Records responses.
    pub(super) fn record(&mut self, received: Received, now: Instant) {
        self.answered += received.responses;
        self.payload_bytes = received.payload_bytes;
        if self.window.is_open() {
            self.latencies.push_many(now - received.sent, received.responses);
        }
    }

    /// Returns the figures.
    pub(super) fn finish(mut self, now: Instant) -> Outcome<Sample> {
        self.window.close(now)?;
        let span = self.window.span().ok_or("no request was sent")?;
        let counted = self.latencies.count()?;
        Ok(Sample {
            answered: f64::from(self.answered),
            payload_bytes: f64::from(u32::try_from(self.payload_bytes)?),
            per_second: counted / span.seconds,
            p50: self.latencies.quantile_micros(0.5),
            p99: self.latencies.quantile_micros(0.99),
            p999: self.latencies.quantile_micros(0.999),
            server_micros: span.server * 1e6 / counted,
            server_share: span.server / span.seconds,
            load_share: span.load / span.seconds,
        })
    }
}

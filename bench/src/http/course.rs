//! Which request comes next in a run, and which answers count.

use std::time::{Duration, Instant};

use super::connection::Received;
use super::request::Numbers;
use super::sample::Sample;
use super::task::Task;
use crate::Outcome;
use crate::keys::Picks;
use crate::latencies::Latencies;
use crate::window::Window;
use crate::work::Work;

/// A run under way.
#[derive(Debug)]
pub(super) struct Course {
    task: Task,
    picks: Picks,
    /// The next key that has not asked.
    in_turn: u32,
    window: Window,
    answered: u32,
    /// Of the last answer.
    body_bytes: usize,
    latencies: Latencies,
}

impl Course {
    pub(super) fn new(task: &Task) -> Outcome<Self> {
        // Filling counts from its first request to its last.
        let (warm_up, length) = match task.work {
            Work::Fill => (Duration::ZERO, None),
            Work::Timed { warm_up, window } => (warm_up, Some(window)),
        };
        Ok(Self {
            task: task.clone(),
            picks: Picks::new(u64::from(task.server)),
            in_turn: 0,
            window: Window::begin(&[task.server], warm_up, length)?,
            answered: 0,
            body_bytes: 0,
            latencies: Latencies::new()?,
        })
    }

    /// What is asked next, if anything.
    pub(super) fn next(&mut self, now: Instant) -> Outcome<Option<Numbers>> {
        self.window.keep(now)?;
        let rule = self.picks.below(self.task.ask.rules);
        let key = match self.task.work {
            Work::Fill => {
                self.in_turn += 1;
                self.in_turn - 1
            }
            Work::Timed { .. } => self.picks.below(self.task.ask.keys),
        };
        let over = match self.task.work {
            Work::Fill => key >= self.task.ask.keys,
            Work::Timed { .. } => self.window.span().is_some(),
        };
        Ok((!over).then_some(Numbers { key, rule }))
    }

    /// An answer has come.
    pub(super) fn answered(&mut self, received: Received, now: Instant) {
        self.answered += 1;
        self.body_bytes = received.body_bytes;
        if self.window.is_open() {
            self.latencies.push(now - received.sent);
        }
    }

    /// What came out.
    pub(super) fn finish(mut self, now: Instant) -> Outcome<Sample> {
        self.window.close(now)?;
        let span = self.window.span().ok_or("nothing was asked")?;
        let counted = self.latencies.count()?;
        Ok(Sample {
            answered: f64::from(self.answered),
            body_bytes: f64::from(u32::try_from(self.body_bytes)?),
            per_second: counted / span.seconds,
            p50: self.latencies.micros(0.5),
            p99: self.latencies.micros(0.99),
            p999: self.latencies.micros(0.999),
            server_micros: span.server * 1e6 / counted,
            load_share: span.load / span.seconds,
        })
    }
}

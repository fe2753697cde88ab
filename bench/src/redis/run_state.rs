//! State of a load run: chooses keys, records replies within the window, and verifies the
//! decisions.

use std::time::{Duration, Instant};

use super::caller::Reply;
use super::limits::Limits;
use super::sample::Sample;
use super::task::{RequestSpec, Task};
use crate::Outcome;
use crate::keys::Rng;
use crate::latencies::Latencies;
use crate::load_mode::LoadMode;
use crate::window::Window;

/// The state of a run.
#[derive(Debug)]
pub(super) struct RunState {
    requests: RequestSpec,
    mode: LoadMode,
    rng: Rng,
    /// Requests sent per key.
    requests_per_key: Vec<u32>,
    /// The next unused key in [`LoadMode::Fill`].
    next_key: u32,
    window: Window,
    answered: u32,
    allowed: u32,
    /// The smallest remaining quota in any reply.
    least_remaining: u64,
    latencies: Latencies,
}

impl RunState {
    pub(super) fn new(task: &Task, servers: &[u32]) -> Outcome<Self> {
        let (warm_up, length) = match task.mode {
            LoadMode::Fill => (Duration::ZERO, None),
            LoadMode::Timed { warm_up, window } => (warm_up, Some(window)),
        };
        Ok(Self {
            requests: task.requests,
            mode: task.mode,
            rng: Rng::new(servers.iter().copied().map(u64::from).sum()),
            requests_per_key: vec![0; task.requests.keys as usize],
            next_key: 0,
            window: Window::begin(servers, warm_up, length)?,
            answered: 0,
            allowed: 0,
            least_remaining: u64::MAX,
            latencies: Latencies::new()?,
        })
    }

    /// Returns the number of the next key, or `None` when the run is over.
    pub(super) fn next(&mut self, now: Instant) -> Outcome<Option<u32>> {
        self.window.update(now)?;
        let key = match self.mode {
            LoadMode::Timed { .. } if self.window.span().is_some() => return Ok(None),
            LoadMode::Fill if self.next_key == self.requests.keys => return Ok(None),
            LoadMode::Timed { .. } => self.rng.below(self.requests.keys),
            LoadMode::Fill => {
                self.next_key += 1;
                self.next_key - 1
            }
        };
        if let Some(count) = self.requests_per_key.get_mut(key as usize) {
            *count += 1;
        }
        Ok(Some(self.requests.first + key))
    }

    /// Records the reply to a request.
    pub(super) fn record(&mut self, reply: Reply, sent: Instant, now: Instant) {
        self.answered += 1;
        self.allowed += u32::from(reply.is_allowed);
        self.least_remaining = self.least_remaining.min(reply.remaining);
        if self.window.is_open() {
            self.latencies.push(now - sent);
        }
    }

    /// Verifies the decisions and returns the figures.
    pub(super) fn finish(
        mut self,
        now: Instant,
        [commands, script_calls]: [f64; 2],
    ) -> Outcome<Sample> {
        self.window.close(now)?;
        self.check()?;
        let span = self.window.span().ok_or("no request was sent")?;
        let counted = self.latencies.count()?;
        Ok(Sample {
            answered: f64::from(self.answered),
            allowed: f64::from(self.allowed),
            commands,
            script_calls,
            per_second: counted / span.seconds,
            p50: self.latencies.quantile_micros(0.5),
            p99: self.latencies.quantile_micros(0.99),
            redis_micros: span.server * 1e6 / counted,
            client_micros: span.load * 1e6 / counted,
        })
    }

    /// Checks that every key got exactly what its limit admits. With a single key, checks the
    /// remaining quota too.
    fn check(&self) -> Outcome<()> {
        let RequestSpec { burst, keys, .. } = self.requests;
        let admitted: u32 = self.requests_per_key.iter().map(|count| burst.min(*count)).sum();
        if self.allowed != admitted {
            let Self { allowed, answered, .. } = self;
            return Err(format!(
                "{allowed} of {answered} requests were allowed; expected {admitted}"
            )
            .into());
        }
        let expected = burst - admitted.min(burst);
        let refills = self.requests.limits == Limits::RefillingBucket;
        if keys == 1 && !refills && self.least_remaining != u64::from(expected) {
            return Err(format!(
                "remaining quota is {}; expected {expected}",
                self.least_remaining
            )
            .into());
        }
        Ok(())
    }
}

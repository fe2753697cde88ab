//! Which key asks next in a run, which answers count, and whether they are right.

use std::time::{Duration, Instant};

use super::asker::Answer;
use super::sample::Sample;
use super::task::{Ask, Task};
use crate::Outcome;
use crate::keys::Picks;
use crate::latencies::Latencies;
use crate::window::Window;
use crate::work::Work;

/// A run under way.
#[derive(Debug)]
pub(super) struct Course {
    ask: Ask,
    work: Work,
    picks: Picks,
    /// How often each key has asked.
    asked: Vec<u32>,
    /// The next key that has not asked, where keys are filled in.
    in_turn: u32,
    window: Window,
    answered: u32,
    allowed: u32,
    /// The least that was left to any key.
    least_remaining: u64,
    latencies: Latencies,
}

impl Course {
    pub(super) fn new(task: &Task, servers: &[u32]) -> Outcome<Self> {
        let (warm_up, length) = match task.work {
            Work::Fill => (Duration::ZERO, None),
            Work::Timed { warm_up, window } => (warm_up, Some(window)),
        };
        Ok(Self {
            ask: task.ask,
            work: task.work,
            picks: Picks::new(servers.iter().copied().map(u64::from).sum()),
            asked: vec![0; task.ask.keys as usize],
            in_turn: 0,
            window: Window::begin(servers, warm_up, length)?,
            answered: 0,
            allowed: 0,
            least_remaining: u64::MAX,
            latencies: Latencies::new()?,
        })
    }

    /// The number of the key that asks next, if any does.
    pub(super) fn next(&mut self, now: Instant) -> Outcome<Option<u32>> {
        self.window.keep(now)?;
        let key = match self.work {
            Work::Timed { .. } if self.window.span().is_some() => return Ok(None),
            Work::Fill if self.in_turn == self.ask.keys => return Ok(None),
            Work::Timed { .. } => self.picks.below(self.ask.keys),
            Work::Fill => {
                self.in_turn += 1;
                self.in_turn - 1
            }
        };
        if let Some(asked) = self.asked.get_mut(key as usize) {
            *asked += 1;
        }
        Ok(Some(self.ask.first + key))
    }

    /// An answer has come to what was asked then.
    pub(super) fn answered(&mut self, answer: Answer, sent: Instant, now: Instant) {
        self.answered += 1;
        self.allowed += u32::from(answer.is_allowed);
        self.least_remaining = self.least_remaining.min(answer.remaining);
        if self.window.is_open() {
            self.latencies.push(now - sent);
        }
    }

    /// What came out, if it is right.
    pub(super) fn finish(mut self, now: Instant, commands: f64) -> Outcome<Sample> {
        self.window.close(now)?;
        self.check()?;
        let span = self.window.span().ok_or("nothing was asked")?;
        let counted = self.latencies.count()?;
        Ok(Sample {
            answered: f64::from(self.answered),
            allowed: f64::from(self.allowed),
            commands,
            per_second: counted / span.seconds,
            p50: self.latencies.micros(0.5),
            p99: self.latencies.micros(0.99),
            redis_micros: span.server * 1e6 / counted,
            client_micros: span.load * 1e6 / counted,
        })
    }

    /// Every key gets what its limit admits, no less and no more. Of one key it is also known what must
    /// be left.
    fn check(&self) -> Outcome<()> {
        let Ask { burst, keys, .. } = self.ask;
        let admitted: u32 = self.asked.iter().map(|asked| burst.min(*asked)).sum();
        if self.allowed != admitted {
            let Self { allowed, answered, .. } = self;
            return Err(format!("{allowed} of {answered} passed, not {admitted}").into());
        }
        let left = burst - admitted.min(burst);
        if keys == 1 && self.least_remaining != u64::from(left) {
            return Err(format!("{} were left, not {left}", self.least_remaining).into());
        }
        Ok(())
    }
}

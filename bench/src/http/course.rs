//! Which request comes next in a run, and which answers count.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::connection::Received;
use super::cpu::Meter;
use super::request::Numbers;
use super::sample::Sample;
use super::task::{Task, Work};
use crate::Outcome;
use crate::keys::Picks;

/// Latencies are kept to three digits, which is finer than their spread, and up to a minute.
const DIGITS: u8 = 3;
const LONGEST_NANOS: u64 = 60_000_000_000;

/// A run under way.
#[derive(Debug)]
pub(super) struct Course {
    task: Task,
    picks: Picks,
    /// The next key that has not asked.
    in_turn: u32,
    start: Instant,
    meters: [Meter; 2],
    window: Option<Window>,
    answered: u32,
    /// Of the last answer.
    body_bytes: usize,
    /// In nanoseconds.
    latencies: Histogram<u32>,
}

/// The part that counts: when it began and how long it was, and the same in processor time.
#[derive(Debug, Clone, Copy)]
struct Window {
    begun: Instant,
    cpu: [f64; 2],
    length: Option<Length>,
}

#[derive(Debug, Clone, Copy)]
struct Length {
    seconds: f64,
    cpu: [f64; 2],
}

impl Course {
    pub(super) fn new(task: &Task) -> Outcome<Self> {
        Ok(Self {
            task: task.clone(),
            picks: Picks::new(u64::from(task.server)),
            in_turn: 0,
            start: Instant::now(),
            meters: [Meter::of(&task.server.to_string())?, Meter::of("self")?],
            window: None,
            answered: 0,
            body_bytes: 0,
            latencies: Histogram::new_with_max(LONGEST_NANOS, DIGITS)?,
        })
    }

    /// What is asked next, if anything.
    pub(super) fn next(&mut self, now: Instant) -> Outcome<Option<Numbers>> {
        self.keep_time(now)?;
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
            Work::Timed { .. } => self.window.is_some_and(|window| window.length.is_some()),
        };
        Ok((!over).then_some(Numbers { key, rule }))
    }

    /// An answer has come.
    pub(super) fn answered(&mut self, received: Received, now: Instant) {
        self.answered += 1;
        self.body_bytes = received.body_bytes;
        if self.window.is_some_and(|window| window.length.is_none()) {
            let nanos = u64::try_from((now - received.sent).as_nanos()).unwrap_or(u64::MAX);
            self.latencies.saturating_record(nanos);
        }
    }

    fn keep_time(&mut self, now: Instant) -> Outcome<()> {
        // Filling counts from its first request to its last.
        let (warm_up, length) = match self.task.work {
            Work::Fill => (Duration::ZERO, None),
            Work::Timed { warm_up, window } => (warm_up, Some(window)),
        };
        match self.window {
            None if now - self.start >= warm_up => {
                self.window = Some(Window { begun: now, cpu: self.cpu()?, length: None });
            }
            Some(Window { begun, length: None, .. })
                if length.is_some_and(|length| now - begun >= length) =>
            {
                self.close(now)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, now: Instant) -> Outcome<()> {
        let cpu = self.cpu()?;
        let window = self.window.as_mut().filter(|window| window.length.is_none());
        if let Some(window) = window {
            let [server, load] = cpu;
            let [server_before, load_before] = window.cpu;
            let seconds = (now - window.begun).as_secs_f64();
            window.length =
                Some(Length { seconds, cpu: [server - server_before, load - load_before] });
        }
        Ok(())
    }

    fn cpu(&self) -> Outcome<[f64; 2]> {
        let [server, load] = &self.meters;
        Ok([server.seconds()?, load.seconds()?])
    }

    /// What came out.
    pub(super) fn finish(mut self, now: Instant) -> Outcome<Sample> {
        self.close(now)?;
        let length = self.window.and_then(|window| window.length).ok_or("nothing was asked")?;
        let [server, load] = length.cpu;
        let counted = f64::from(u32::try_from(self.latencies.len())?);
        if counted == 0.0 {
            return Err("no answer within the window".into());
        }
        let micros = |quantile| {
            let nanos = self.latencies.value_at_quantile(quantile);
            Duration::from_nanos(nanos).as_secs_f64() * 1e6
        };
        Ok(Sample {
            answered: f64::from(self.answered),
            body_bytes: f64::from(u32::try_from(self.body_bytes)?),
            per_second: counted / length.seconds,
            p50: micros(0.5),
            p99: micros(0.99),
            p999: micros(0.999),
            server_micros: server * 1e6 / counted,
            load_share: load / length.seconds,
        })
    }
}

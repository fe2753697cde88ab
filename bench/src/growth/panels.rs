//! The measurements.

use super::panel::Panel;
use super::subjects::{self, THROTTLECRAB};
use crate::Outcome;
use crate::candidate::Candidate;
use crate::keys::{Draw, KeyFormat};
use crate::scale::short_count;
use crate::timed_run::{Run, TimedLimiter};

/// Size of the benchmark.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    pub(super) rounds: u32,
    decisions: u32,
    keys: &'static [u32],
    rules: &'static [u32],
    limits: &'static [u32],
    threads: &'static [u32],
    /// Number of keys where it does not grow.
    fixed_keys: u32,
}

impl Scale {
    pub(super) const FULL: Self = Self {
        rounds: 5,
        decisions: 500_000,
        keys: &[1_000, 10_000, 100_000, 1_000_000, 10_000_000],
        rules: &[1, 10, 100, 1_000, 10_000],
        limits: &[1, 2, 4, 8, 16],
        threads: &[1, 2],
        fixed_keys: 10_000,
    };
    pub(super) const QUICK: Self = Self {
        rounds: 2,
        decisions: 20_000,
        keys: &[100, 1_000, 10_000],
        rules: &[1, 10, 100],
        limits: &[1, 4, 16],
        threads: &[1, 2],
        fixed_keys: 1_000,
    };
}

/// Measures all panels.
///
/// # Errors
/// A decision was refused, or a key dropped.
pub(super) fn measure(scale: Scale) -> Outcome<Vec<Panel>> {
    Ok(vec![by_keys(scale)?, by_rules(scale)?, by_limits(scale)?, by_threads(scale)?])
}

fn by_keys(scale: Scale) -> Outcome<Panel> {
    let note =
        "One thread, one token bucket per key, random keys of 13 bytes that were all used before.";
    let mut panel = Panel::new("Keys", "keys", note.to_owned());
    for &keys in scale.keys {
        let limiters = filled(subjects::for_keys(keys)?, keys)?;
        panel.measure(keys, scale.rounds, limiters, |limiter| {
            time(limiter, &written(scale, keys), 1)
        })?;
    }
    Ok(panel)
}

fn by_rules(scale: Scale) -> Outcome<Panel> {
    let note = "One thread, one client; each rule has its own path and one token bucket, and all are equally \
                probable: to find the rule and to decide. governor and throttlecrab have no rules.";
    let mut panel = Panel::new("Rules", "rules", note.to_owned());
    for &rules in scale.rules {
        let paths = subjects::paths(rules);
        let run = Run { draw: Draw::Array(&paths), decisions: scale.decisions / 2 };
        let limiters = subjects::for_rules(rules)?;
        panel.measure(rules, scale.rounds, limiters, |limiter| time(limiter, &run, 1))?;
    }
    Ok(panel)
}

fn by_limits(scale: Scale) -> Outcome<Panel> {
    let keys = scale.fixed_keys;
    let note = format!(
        "One thread, {} keys. tollgate takes from all limits of a key or from none. governor has one limit per \
         limiter: the limiters are called in sequence, and what was taken before a refusal stays taken.",
        short_count(keys),
    );
    let mut panel = Panel::new("Limits per decision", "limits", note);
    for &limits in scale.limits {
        let limiters = filled(subjects::for_limits(limits)?, keys)?;
        let run = Run { decisions: scale.decisions / 2, ..written(scale, keys) };
        panel.measure(limits, scale.rounds, limiters, |limiter| time(limiter, &run, 1))?;
    }
    Ok(panel)
}

fn by_threads(scale: Scale) -> Outcome<Panel> {
    let keys = scale.fixed_keys;
    let note = format!(
        "{} keys, one token bucket each. The time is that of a decision for its thread: a flat curve means that \
         two threads make twice as many decisions. throttlecrab needs exclusive access.",
        short_count(keys),
    );
    let mut panel = Panel::new("Threads", "threads", note);
    for &threads in scale.threads {
        let mut limiters = subjects::for_keys(keys)?;
        limiters.push((THROTTLECRAB, Candidate::Periodic.build(keys)?));
        let limiters = filled(limiters, keys)?;
        let run = written(scale, keys);
        panel.measure(threads, scale.rounds, limiters, |limiter| time(limiter, &run, threads))?;
    }
    Ok(panel)
}

fn written(scale: Scale, keys: u32) -> Run<'static> {
    let draw = Draw::Written { below: keys, key_format: KeyFormat::User };
    Run { draw, decisions: scale.decisions }
}

fn filled(mut limiters: Vec<subjects::Named>, keys: u32) -> Outcome<Vec<subjects::Named>> {
    let draw = Draw::Sequential { from: 0, key_format: KeyFormat::User };
    for (_, limiter) in &mut limiters {
        limiter.run_exclusive(&Run { draw, decisions: keys }).nanos()?;
    }
    Ok(limiters)
}

fn time(limiter: &mut dyn TimedLimiter, run: &Run<'_>, threads: u32) -> Outcome<f64> {
    limiter.warm_up(&Run { decisions: run.decisions / 4, ..*run });
    limiter.run_threads(run, threads).nanos()
}

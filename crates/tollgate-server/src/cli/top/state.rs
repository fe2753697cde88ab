//! State of the watched service: updates change it, and everything on screen is drawn from it.

use std::collections::BTreeMap;

use super::response::{Frame, Point, Policy};
use super::update::Update;

/// Maximum number of seconds to keep.
const MAX_POINTS: usize = 900;

/// Tolerance in milliseconds for points later than the clock of the service; later ones are dropped.
const MAX_AHEAD_MS: i64 = 60_000;

/// Maximum number of rules per point.
const MAX_RULES: usize = 201;

/// Everything received from the service.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    /// URL of the service, as given by the user.
    pub(super) server: String,
    pub(super) policy: Option<Policy>,
    pub(super) frame: Option<Frame>,
    /// Points by their start, in Unix milliseconds.
    points: BTreeMap<i64, Point>,
    /// Why the connection is lost; none while connected.
    pub(super) lost: Option<String>,
    /// Seconds since the last frame.
    pub(super) frame_age: u64,
}

/// Counts of one rule over all kept points.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) refused: f64,
    pub(super) shadow: f64,
    pub(super) next: f64,
    pub(super) diverged: f64,
}

impl State {
    pub(super) fn new(server: &str) -> Self {
        Self { server: server.to_owned(), ..Self::default() }
    }

    /// Applies an update.
    pub(super) fn apply(&mut self, update: Update) {
        match update {
            Update::Policy(policy) => self.policy = Some(*policy),
            Update::History(history) => {
                if history.first {
                    self.points.clear();
                }
                self.keep(history.points);
            }
            Update::Frame(mut frame) => {
                self.keep(std::mem::take(&mut frame.points));
                let latest = frame.t.saturating_add(MAX_AHEAD_MS);
                self.points.retain(|t, _| *t <= latest);
                self.frame = Some(*frame);
                self.lost = None;
                self.frame_age = 0;
            }
            Update::Lost(reason) => self.lost = Some(reason),
        }
    }

    /// Ages the last frame by one second.
    pub(super) fn tick(&mut self) {
        self.frame_age = self.frame_age.saturating_add(1);
    }

    /// Stores points. A point that is received again replaces the earlier one, because its counts have grown.
    fn keep(&mut self, points: Vec<Point>) {
        for mut point in points {
            while point.rules.len() > MAX_RULES {
                point.rules.pop_last();
            }
            self.points.insert(point.t, point);
            while self.points.len() > MAX_POINTS {
                self.points.pop_first();
            }
        }
    }

    /// Returns the maximum of a value in each of the last `steps` steps of `seconds` seconds, oldest first; none
    /// for a step without points. Steps start at whole multiples, so that a column always covers the same seconds.
    pub(super) fn steps(
        &self,
        seconds: u32,
        steps: usize,
        value_of: fn(&Point) -> f64,
    ) -> Vec<Option<f64>> {
        let length = i64::from(seconds.max(1)) * 1000;
        let mut maxima = vec![None; steps];
        let Some((newest, _)) = self.points.last_key_value() else { return maxima };
        let newest = newest.div_euclid(length);
        for (t, point) in self.points.iter().rev() {
            let Ok(back) = usize::try_from(newest - t.div_euclid(length)) else { continue };
            let Some(index) = steps.checked_sub(back + 1) else { break };
            if let Some(maximum) = maxima.get_mut(index) {
                let value = value_of(point).max(0.0);
                *maximum = Some(maximum.map_or(value, |maximum: f64| maximum.max(value)));
            }
        }
        maxima
    }

    /// Returns the counts of each rule over all kept points.
    pub(super) fn sums(&self) -> BTreeMap<&str, Sums> {
        let mut sums: BTreeMap<&str, Sums> = BTreeMap::new();
        let rules = self.points.values().flat_map(|point| &point.rules);
        for (rule, counts) in rules {
            let count = |index: usize| counts.get(index).copied().unwrap_or_default().max(0.0);
            let sum = sums.entry(rule).or_default();
            sum.refused += count(1);
            sum.shadow += count(2);
            sum.next += count(3);
            sum.diverged += count(4);
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn state_of(points: &str) -> State {
        let mut state = State::new("http://here");
        state.apply(sample::update("history", &format!(r#"{{"points":[{points}]}}"#)));
        state
    }

    fn point(t: i64, allowed: u32) -> String {
        format!(
            r#"{{"t":{t},"allowed":{allowed},"refused":0,"degraded":0,"errors":0,"p50_us":null,"p99_us":null,"rules":{{}}}}"#
        )
    }

    #[test]
    fn repeated_point_replaces_earlier_one() {
        let mut state = State::new("http://here");
        state.apply(sample::update("history", sample::HISTORY));
        state.apply(sample::update("frame", sample::FRAME));
        assert_eq!(
            state.sums()["search"],
            Sums { refused: 4.0, shadow: 0.0, next: 6.0, diverged: 2.0 }
        );
        state.apply(sample::update("frame", sample::FRAME));
        assert_eq!(state.sums()["search"].next, 6.0);
        assert_eq!(state.steps(1, 3, |point| point.allowed), [Some(10.0), None, Some(20.0)]);
    }

    #[test]
    fn steps_return_maxima_and_gaps() {
        let state =
            state_of(&[point(0, 1), point(1000, 9), point(4000, 3), point(6000, 2)].join(","));
        assert_eq!(state.steps(2, 5, |p| p.allowed), [None, Some(9.0), None, Some(3.0), Some(2.0)]);
        assert_eq!(state.steps(2, 2, |p| p.allowed), [Some(3.0), Some(2.0)]);
        assert_eq!(state.steps(2, 0, |p| p.allowed), []);
        assert_eq!(state.steps(0, 1, |p| p.allowed), [Some(2.0)]);
        assert_eq!(State::new("x").steps(1, 2, |p| p.allowed), [None, None]);
    }

    #[test]
    fn keeps_limited_number_of_points() {
        let all: Vec<String> = (0..2000).map(|second| point(second * 1000, 1)).collect();
        assert_eq!(state_of(&all.join(",")).points.len(), MAX_POINTS);
    }

    #[test]
    fn drops_points_far_in_the_future() {
        let mut state = state_of(&[point(i64::MAX, 1), point(i64::MIN, 1)].join(","));
        let _ = state.steps(1, 10, |p| p.allowed);
        state.apply(sample::update("frame", sample::FRAME));
        assert_eq!(state.steps(1, 1, |p| p.allowed), [Some(20.0)]);
    }

    #[test]
    fn frame_clears_lost_connection() {
        let mut state = State::new("http://here");
        state.apply(Update::Lost("gone".to_owned()));
        state.tick();
        assert_eq!((state.lost.as_deref(), state.frame_age), (Some("gone"), 1));
        state.apply(sample::update("frame", sample::FRAME));
        assert_eq!((state.lost, state.frame_age), (None, 0));
    }
}

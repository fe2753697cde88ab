//! What is known: the one place that events change, and all that is drawn.

use std::collections::BTreeMap;

use super::response::{Frame, Point, Policy};
use super::update::Update;

/// How many seconds are kept.
const MOST_POINTS: usize = 900;

/// How far ahead of its service's clock a second may begin.
const AHEAD_MS: i64 = 60_000;

/// Of how many rules a second may tell.
const MOST_RULES: usize = 201;

/// What is known of a service.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    /// The service, as it was named.
    pub(super) server: String,
    pub(super) policy: Option<Policy>,
    pub(super) frame: Option<Frame>,
    /// The last seconds, by when they began.
    points: BTreeMap<i64, Point>,
    /// Why nothing is heard at the moment.
    pub(super) lost: Option<String>,
    /// For how many seconds there was no frame.
    pub(super) quiet: u64,
}

/// What rules on trial came to in the time that is kept.
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

    /// Takes over what was heard.
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
                let latest = frame.t.saturating_add(AHEAD_MS);
                self.points.retain(|t, _| *t <= latest);
                self.frame = Some(*frame);
                self.lost = None;
                self.quiet = 0;
            }
            Update::Lost(reason) => self.lost = Some(reason),
        }
    }

    /// A second has passed.
    pub(super) fn tick(&mut self) {
        self.quiet = self.quiet.saturating_add(1);
    }

    /// A second that is told again has grown.
    fn keep(&mut self, points: Vec<Point>) {
        for mut point in points {
            while point.rules.len() > MOST_RULES {
                point.rules.pop_last();
            }
            self.points.insert(point.t, point);
            while self.points.len() > MOST_POINTS {
                self.points.pop_first();
            }
        }
    }

    /// The highest figure of each step of so many seconds, oldest first, as many steps as are asked for; nothing
    /// where nobody told of one. Steps begin at whole multiples, so that a column keeps its seconds.
    pub(super) fn steps(
        &self,
        seconds: u32,
        steps: usize,
        of: fn(&Point) -> f64,
    ) -> Vec<Option<f64>> {
        let length = i64::from(seconds.max(1)) * 1000;
        let mut highest = vec![None; steps];
        let Some((newest, _)) = self.points.last_key_value() else { return highest };
        let newest = newest.div_euclid(length);
        for (t, point) in self.points.iter().rev() {
            let Ok(back) = usize::try_from(newest - t.div_euclid(length)) else { continue };
            let Some(place) = steps.checked_sub(back + 1) else { break };
            if let Some(known) = highest.get_mut(place) {
                let figure = of(point).max(0.0);
                *known = Some(known.map_or(figure, |known: f64| known.max(figure)));
            }
        }
        highest
    }

    /// What each rule came to.
    pub(super) fn sums(&self) -> BTreeMap<&str, Sums> {
        let mut sums: BTreeMap<&str, Sums> = BTreeMap::new();
        let rules = self.points.values().flat_map(|point| &point.rules);
        for (rule, figures) in rules {
            let figure = |at: usize| figures.get(at).copied().unwrap_or_default().max(0.0);
            let sum = sums.entry(rule).or_default();
            sum.refused += figure(1);
            sum.shadow += figure(2);
            sum.next += figure(3);
            sum.diverged += figure(4);
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn known(points: &str) -> State {
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
    fn a_second_told_again_replaces_what_was_told() {
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
    fn steps_tell_the_highest_and_leave_gaps() {
        let state = known(&[point(0, 1), point(1000, 9), point(4000, 3), point(6000, 2)].join(","));
        assert_eq!(state.steps(2, 5, |p| p.allowed), [None, Some(9.0), None, Some(3.0), Some(2.0)]);
        assert_eq!(state.steps(2, 2, |p| p.allowed), [Some(3.0), Some(2.0)]);
        assert_eq!(state.steps(2, 0, |p| p.allowed), []);
        assert_eq!(state.steps(0, 1, |p| p.allowed), [Some(2.0)]);
        assert_eq!(State::new("x").steps(1, 2, |p| p.allowed), [None, None]);
    }

    #[test]
    fn only_so_many_seconds_are_kept() {
        let all: Vec<String> = (0..2000).map(|second| point(second * 1000, 1)).collect();
        assert_eq!(known(&all.join(",")).points.len(), MOST_POINTS);
    }

    #[test]
    fn a_clock_that_is_wrong_does_not_stay() {
        let mut state = known(&[point(i64::MAX, 1), point(i64::MIN, 1)].join(","));
        let _ = state.steps(1, 10, |p| p.allowed);
        state.apply(sample::update("frame", sample::FRAME));
        assert_eq!(state.steps(1, 1, |p| p.allowed), [Some(20.0)]);
    }

    #[test]
    fn a_frame_ends_a_loss() {
        let mut state = State::new("http://here");
        state.apply(Update::Lost("gone".to_owned()));
        state.tick();
        assert_eq!((state.lost.as_deref(), state.quiet), (Some("gone"), 1));
        state.apply(sample::update("frame", sample::FRAME));
        assert_eq!((state.lost, state.quiet), (None, 0));
    }
}

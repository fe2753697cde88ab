//! One panel: the time of a decision for several sizes, as one curve per limiter.

use crate::Outcome;
use crate::rounds::Rounds;
use crate::timed_run::TimedLimiter;

/// Curves over one axis.
#[derive(Debug, Clone)]
pub struct Panel {
    /// The heading.
    pub title: &'static str,
    /// The unit of the sizes.
    pub axis: &'static str,
    /// What is measured.
    pub note: String,
    /// One curve per limiter.
    pub curves: Vec<Curve>,
}

/// The figures of one limiter.
#[derive(Debug, Clone)]
pub struct Curve {
    /// The name of the limiter.
    pub name: &'static str,
    /// Sizes, and nanoseconds per decision.
    pub points: Vec<(u32, Rounds)>,
}

impl Panel {
    /// Creates a panel without curves.
    pub(super) fn new(title: &'static str, axis: &'static str, note: String) -> Self {
        Self { title, axis, note, curves: Vec::new() }
    }

    /// Times all limiters of one size, each once per round, so that disturbances of the machine affect all.
    pub(super) fn measure(
        &mut self,
        size: u32,
        rounds: u32,
        mut limiters: Vec<(&'static str, Box<dyn TimedLimiter>)>,
        mut time: impl FnMut(&mut dyn TimedLimiter) -> Outcome<f64>,
    ) -> Outcome<()> {
        eprintln!("  {size} {}", self.axis);
        let mut figures = vec![Rounds::default(); limiters.len()];
        for _ in 0..rounds {
            for ((name, limiter), figures) in limiters.iter_mut().zip(&mut figures) {
                let nanos = time(limiter.as_mut()).map_err(|error| format!("{name}: {error}"))?;
                figures.push(nanos);
            }
        }
        for ((name, limiter), figures) in limiters.into_iter().zip(figures) {
            limiter.check_no_drops().map_err(|error| format!("{name}: {error}"))?;
            self.push(name, size, figures);
        }
        Ok(())
    }

    /// Adds a point to the curve with this name.
    pub fn push(&mut self, name: &'static str, size: u32, nanos: Rounds) {
        match self.curves.iter_mut().find(|curve| curve.name == name) {
            Some(curve) => curve.points.push((size, nanos)),
            None => self.curves.push(Curve { name, points: vec![(size, nanos)] }),
        }
    }
}

//! The same figure from several rounds.

use std::fmt;

/// One figure per round, in the order they were taken. Shown as the median and the range.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rounds(Vec<f64>);

impl Rounds {
    /// One more.
    pub fn push(&mut self, figure: f64) {
        self.0.push(figure);
    }

    /// The one in the middle; of an even number the lower. Not a number when there is none.
    #[must_use]
    pub fn median(&self) -> f64 {
        let sorted = self.sorted();
        let middle = sorted.len().saturating_sub(1) / 2;
        sorted.get(middle).copied().unwrap_or(f64::NAN)
    }

    /// The least.
    #[must_use]
    pub fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::min)
    }

    /// The most.
    #[must_use]
    pub fn most(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::max)
    }

    /// Each round's figure as a multiple of another's in the same round: what slows the machine
    /// slows both.
    #[must_use]
    pub fn relative_to(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(ours, theirs)| ours / theirs).collect())
    }

    /// Each round's figure less another's in the same round.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(ours, theirs)| ours - theirs).collect())
    }

    /// Each round's figure less a constant.
    #[must_use]
    pub fn less(&self, constant: f64) -> Self {
        Self(self.0.iter().map(|figure| figure - constant).collect())
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted
    }
}

impl FromIterator<f64> for Rounds {
    fn from_iter<I: IntoIterator<Item = f64>>(figures: I) -> Self {
        Self(figures.into_iter().collect())
    }
}

/// `median (least–most)`, with the precision of the format.
impl fmt::Display for Rounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(0);
        let (median, least, most) = (self.median(), self.least(), self.most());
        write!(f, "{median:.digits$} ({least:.digits$}–{most:.digits$})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_median_and_range() {
        let rounds: Rounds = [30.4, 10.0, 20.0].into_iter().collect();
        assert_eq!(rounds.to_string(), "20 (10–30)");
        assert_eq!(format!("{rounds:.1}"), "20.0 (10.0–30.4)");
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let ours: Rounds = [10.0, 40.0].into_iter().collect();
        let theirs: Rounds = [20.0, 80.0].into_iter().collect();
        assert_eq!(format!("{:.1}", ours.relative_to(&theirs)), "0.5 (0.5–0.5)");
    }

    #[test]
    fn nothing_has_no_median() {
        assert!(Rounds::default().median().is_nan());
    }
}

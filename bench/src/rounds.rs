//! One figure, measured in several rounds.

use std::fmt;

/// One value per round, in order of measurement. Displayed as median and range.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rounds(Vec<f64>);

impl Rounds {
    /// Adds the value of a round.
    pub fn push(&mut self, figure: f64) {
        self.0.push(figure);
    }

    /// Returns the median; for an even number of rounds the lower middle value. NaN without rounds.
    #[must_use]
    pub fn median(&self) -> f64 {
        let sorted = self.sorted();
        let middle = sorted.len().saturating_sub(1) / 2;
        sorted.get(middle).copied().unwrap_or(f64::NAN)
    }

    /// Returns the minimum. NaN without rounds.
    #[must_use]
    pub fn min(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::min)
    }

    /// Returns the maximum. NaN without rounds.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::max)
    }

    /// Divides each value by the value of the same round in `other`: disturbances of the machine
    /// affect both.
    #[must_use]
    pub fn relative_to(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(value, divisor)| value / divisor).collect())
    }

    /// Subtracts the value of the same round in `other` from each value.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(value, subtrahend)| value - subtrahend).collect())
    }

    /// Subtracts a constant from each value.
    #[must_use]
    pub fn minus_constant(&self, constant: f64) -> Self {
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

/// `median (min–max)`, with the precision of the format.
impl fmt::Display for Rounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(0);
        let (median, min, max) = (self.median(), self.min(), self.max());
        write!(f, "{median:.digits$} ({min:.digits$}–{max:.digits$})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displays_median_and_range() {
        let rounds: Rounds = [30.4, 10.0, 20.0].into_iter().collect();
        assert_eq!(rounds.to_string(), "20 (10–30)");
        assert_eq!(format!("{rounds:.1}"), "20.0 (10.0–30.4)");
    }

    #[test]
    fn ratios_are_computed_per_round() {
        let ours: Rounds = [10.0, 40.0].into_iter().collect();
        let theirs: Rounds = [20.0, 80.0].into_iter().collect();
        assert_eq!(format!("{:.1}", ours.relative_to(&theirs)), "0.5 (0.5–0.5)");
    }

    #[test]
    fn median_without_rounds_is_nan() {
        assert!(Rounds::default().median().is_nan());
    }
}

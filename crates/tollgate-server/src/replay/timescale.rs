//! Intervals of time for plots: as many as fit a plot, whatever the length of the log.

/// Maximum number of intervals.
const MAX_INTERVALS: u64 = 120;
/// First length of an interval, in microseconds.
const FIRST: u64 = 1_000_000;

/// Divides the time of a log into intervals of equal length, which doubles when there are too many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timescale {
    length: u64,
    first: Option<u64>,
}

/// Place of a time on the scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interval {
    /// Number of the interval since the start of the log.
    pub(crate) index: u32,
    /// How often the length has doubled since the previous time; indexes from before are halved as often.
    pub(crate) doublings: u32,
}

impl Default for Timescale {
    fn default() -> Self {
        Self { length: FIRST, first: None }
    }
}

impl Timescale {
    /// Returns the interval of a time. Times must not decrease.
    pub(crate) fn interval(&mut self, at: u64) -> Interval {
        let first = *self.first.get_or_insert(at - at % FIRST);
        let mut doublings = 0;
        while (at - first) / self.length >= MAX_INTERVALS {
            self.length *= 2;
            doublings += 1;
        }
        let index = u32::try_from((at - first) / self.length).unwrap_or(u32::MAX);
        Interval { index, doublings }
    }

    /// Returns the start of the first interval and the length of each, in microseconds.
    pub(crate) fn bounds(&self) -> (u64, u64) {
        (self.first.unwrap_or_default(), self.length)
    }
}

/// Counts in intervals, of which most are empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timeline(Vec<(u32, u32)>);

impl Timeline {
    pub(crate) fn add(&mut self, index: u32) {
        match self.0.last_mut() {
            Some((last, count)) if *last == index => *count = count.saturating_add(1),
            _ => self.0.push((index, 1)),
        }
    }

    pub(crate) fn halve(&mut self) {
        let mut halved: Vec<(u32, u32)> = Vec::with_capacity(self.0.len().div_ceil(2));
        for (index, count) in self.0.drain(..) {
            match halved.last_mut() {
                Some((last, sum)) if *last == index / 2 => *sum = sum.saturating_add(count),
                _ => halved.push((index / 2, count)),
            }
        }
        self.0 = halved;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.0.iter().copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_double_and_counts_stay() {
        let (mut scale, mut timeline) = (Timescale::default(), Timeline::default());
        let start = 1_791_633_336_500_000;
        for second in 0..100_000 {
            let interval = scale.interval(start + second * 1_000_000);
            (0..interval.doublings).for_each(|_| timeline.halve());
            timeline.add(interval.index);
        }
        assert!(timeline.len() <= 120);
        assert_eq!(timeline.iter().map(|(_, count)| count).sum::<u32>(), 100_000);
        assert_eq!(scale.bounds(), (1_791_633_336_000_000, 1_024_000_000));
        assert!(timeline.iter().take(97).all(|(_, count)| count == 1024), "{timeline:?}");
    }
}

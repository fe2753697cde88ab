//! Logs of admissions by several processes, and what an algorithm guarantees for every interval of them. Times are late by an
//! unknown latency; `tollgate_testkit::admission_bound` checks exact times.

use std::collections::BTreeMap;
use std::time::Duration;

/// The number of admissions in each millisecond, of all nodes.
#[derive(Debug, Default)]
pub(crate) struct Admissions(BTreeMap<u64, u64>);

impl Admissions {
    /// Reads lines that begin with a millisecond and a count. An incomplete last line is ignored.
    pub(crate) fn parse(texts: impl Iterator<Item = String>) -> Self {
        let mut all = BTreeMap::new();
        for text in texts {
            let complete = text.rfind('\n').map_or("", |end| &text[..end]);
            for line in complete.lines() {
                let mut words = line.split(' ').map(|word| word.parse::<u64>().unwrap());
                let (millisecond, count) = (words.next().unwrap(), words.next().unwrap());
                if count > 0 {
                    *all.entry(millisecond).or_default() += count;
                }
            }
        }
        Self(all)
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Returns the admissions from a millisecond on, before another one.
    fn between(&self, from: u64, until: u64) -> u64 {
        if from >= until {
            return 0;
        }
        self.0.range(from..until).map(|(_, count)| count).sum()
    }

    /// Returns the most admissions in any interval of this many milliseconds.
    fn highest_within(&self, length: u64) -> u64 {
        let (mut sum, mut highest) = (0, 0);
        let mut first = self.0.iter().peekable();
        for (millisecond, count) in &self.0 {
            sum += count;
            while let Some((start, gone)) = first.peek()
                && **start + length <= *millisecond
            {
                sum -= *gone;
                first.next();
            }
            highest = highest.max(sum);
        }
        highest
    }
}

/// The guarantee of an algorithm. Times of admissions are late by at most a known latency.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    /// At most burst + rate × time in any interval; tokens per second.
    Bucket { rate: u64, burst: u64 },
    /// At most the count in any window.
    Sliding(u64, Duration),
    /// At most the count in the current window and the fading part of the last one; aligned windows.
    Fading(u64, Duration),
    /// At most the count in each window, which begins with its first take.
    Rolling(u64, Duration),
    /// At most the count in each aligned window.
    Aligned(u64, Duration),
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap()
}

impl Bound {
    pub(crate) const fn bucket(rate: u64, burst: u64) -> Self {
        Self::Bucket { rate, burst }
    }

    pub(crate) fn assert_holds(self, admissions: &Admissions, latency: Duration) {
        let highest = self.highest(admissions, latency);
        let max = self.max();
        assert!(highest <= max, "{self:?}: {highest} admissions, at most {max} are allowed");
    }

    pub(crate) const fn max(self) -> u64 {
        match self {
            Self::Bucket { burst, .. } => burst,
            Self::Rolling(count, _) => 2 * count,
            Self::Sliding(count, _) | Self::Fading(count, _) | Self::Aligned(count, _) => count,
        }
    }

    /// Returns the highest figure that is bounded, with the interval shortened by what the times may be late.
    pub(crate) fn highest(self, admissions: &Admissions, latency: Duration) -> u64 {
        // One more, because times are whole milliseconds.
        let late = millis(latency) + 1;
        match self {
            Self::Bucket { rate, .. } => highest_level(admissions, rate, late),
            Self::Sliding(_, window) | Self::Rolling(_, window) => {
                admissions.highest_within(millis(window) - late)
            }
            Self::Aligned(_, window) => highest_aligned(admissions, millis(window), late),
            Self::Fading(_, window) => highest_fading(admissions, millis(window), late),
        }
    }
}

/// Returns the highest level of a bucket that drains at the rate, less what drains within `late`: the most by which an
/// interval exceeds the rate.
fn highest_level(admissions: &Admissions, rate: u64, late: u64) -> u64 {
    let (mut level, mut last, mut highest) = (0_u64, 0_u64, 0_u64);
    for (millisecond, count) in &admissions.0 {
        level = level.saturating_sub(rate * (millisecond - last) / 1000) + count;
        last = *millisecond;
        highest = highest.max(level);
    }
    highest.saturating_sub((rate * late).div_ceil(1000))
}

fn windows(admissions: &Admissions, window: u64) -> impl Iterator<Item = u64> {
    let keys = || admissions.0.keys();
    let first = keys().next().copied().unwrap_or(0) / window;
    let last = keys().next_back().copied().unwrap_or(0) / window;
    (first..=last).map(move |number| number * window)
}

fn highest_aligned(admissions: &Admissions, window: u64, late: u64) -> u64 {
    let in_window = |start| admissions.between(start + late, start + window);
    windows(admissions, window).map(in_window).max().unwrap_or(0)
}

fn highest_fading(admissions: &Admissions, window: u64, late: u64) -> u64 {
    let mut highest = 0;
    for start in windows(admissions, window) {
        let previous = admissions.between((start + late).saturating_sub(window), start);
        let mut current = 0;
        for (millisecond, count) in admissions.0.range(start + late..start + window) {
            current += count;
            let left = window - (millisecond + 1 - start).min(window);
            highest = highest.max(current + previous * left / window);
        }
    }
    highest
}

#[test]
fn figures_of_known_admissions() {
    let lines = "1000 5\n1001 5 7\n1400 0 8\n1500 5\n2000 9\n9 incomplete";
    let admissions = Admissions::parse([lines.to_owned()].into_iter());
    assert_eq!((admissions.total(), admissions.highest_within(501)), (24, 15));
    assert_eq!(highest_level(&admissions, 1, 0), 24);
    assert_eq!(highest_level(&admissions, 1000, 0), 9);
    assert_eq!(highest_aligned(&admissions, 1000, 0), 15);
    assert_eq!(highest_aligned(&admissions, 1000, 2), 5, "early times are uncertain");
    assert_eq!(highest_fading(&admissions, 1000, 0), 9 + 15 * 999 / 1000);
}

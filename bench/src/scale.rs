//! How much is measured.

/// The counts of a run.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// How often each figure is taken of stores that are full already.
    pub rounds: u32,
    /// How often each figure is taken that needs a store to be filled anew.
    pub refills: u32,
    /// How many keys the workloads of many keys have.
    pub keys: [u32; 2],
    /// Decisions of a pass.
    pub decisions: u32,
    /// Keys that are filled in to measure memory and pauses.
    pub filled: u32,
    /// The cap that shares are taken of: 7/8 of a power of two, so that it is exactly what a peer's
    /// map holds.
    pub cap: u32,
}

impl Scale {
    /// Minutes.
    pub const FULL: Self = Self {
        rounds: 9,
        refills: 3,
        keys: [100_000, 1_000_000],
        decisions: 600_000,
        filled: 1_000_000,
        cap: 7 << 14,
    };

    /// Seconds; enough to see that everything works, not to quote.
    pub const QUICK: Self = Self {
        rounds: 3,
        refills: 2,
        keys: [1_000, 10_000],
        decisions: 20_000,
        filled: 50_000,
        cap: 7 << 9,
    };
}

/// A count as people say it: `100 k`, `1 M`.
#[must_use]
pub fn spoken(count: u32) -> String {
    if count >= 1_000_000 && count.is_multiple_of(1_000_000) {
        format!("{} M", count / 1_000_000)
    } else if count >= 1000 && count.is_multiple_of(1000) {
        format!("{} k", count / 1000)
    } else {
        count.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_spoken_without_rounding() {
        assert_eq!(spoken(1), "1");
        assert_eq!(spoken(100_000), "100 k");
        assert_eq!(spoken(1_000_000), "1 M");
        assert_eq!(spoken(1_500_000), "1500 k");
        assert_eq!(spoken(114_688), "114688");
    }
}

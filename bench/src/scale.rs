//! Size of the core benchmarks.

/// The numbers of rounds, keys and decisions.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Rounds of measurements on filled stores.
    pub rounds: u32,
    /// Rounds of measurements that fill an empty store.
    pub refills: u32,
    /// Numbers of keys in the workloads whose key texts are in the CPU cache.
    pub keys: &'static [u32],
    /// Those of them that are also measured with key texts from an array.
    pub array_keys: &'static [u32],
    /// Decisions per run.
    pub decisions: u32,
    /// Number of keys added to measure memory and pauses.
    pub filled: u32,
    /// Maximum number of keys near which decisions are measured: 7/8 of a power of two, the exact
    /// capacity of a peer's map.
    pub cap: u32,
}

impl Scale {
    /// A full run; takes minutes.
    pub const FULL: Self = Self {
        rounds: 7,
        refills: 5,
        keys: &[1_000, 10_000, 100_000, 1_000_000],
        array_keys: &[100_000, 1_000_000],
        decisions: 600_000,
        filled: 1_000_000,
        cap: 7 << 14,
    };

    /// A run of seconds, to test the program. Do not quote its figures.
    pub const QUICK: Self = Self {
        rounds: 3,
        refills: 2,
        keys: &[1_000, 10_000],
        array_keys: &[1_000, 10_000],
        decisions: 20_000,
        filled: 50_000,
        cap: 7 << 9,
    };
}

/// Formats a count with a unit: `100 k`, `1 M`.
#[must_use]
pub fn short_count(count: u32) -> String {
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
    fn counts_are_not_rounded() {
        assert_eq!(short_count(1), "1");
        assert_eq!(short_count(100_000), "100 k");
        assert_eq!(short_count(1_000_000), "1 M");
        assert_eq!(short_count(1_500_000), "1500 k");
        assert_eq!(short_count(114_688), "114688");
    }
}

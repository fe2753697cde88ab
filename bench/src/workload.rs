//! Workloads of the in-process benchmarks.

use crate::keys::{Draw, KeyFormat};
use crate::markdown::Target;
use crate::scale::short_count;

/// From this number of keys on, most decisions wait for memory.
const MANY_KEYS: u32 = 100_000;

/// Where the key text of a decision is in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySource {
    /// Always the same key in the same place.
    Hot,
    /// Just written, so in the CPU cache.
    InCache,
    /// A random place in a large array.
    FromArray,
}

/// Number and format of keys, where their texts are, and the number of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// The number of keys.
    pub keys: u32,
    /// The key format.
    pub key_format: KeyFormat,
    /// Where the key texts are.
    pub key_source: KeySource,
    /// The number of threads.
    pub threads: u32,
}

impl Workload {
    /// Returns the target for the time per decision, as a multiple of governor's.
    #[must_use]
    pub fn target(&self) -> Target {
        Target::AtMost(match self.key_source {
            KeySource::Hot => 1.0,
            KeySource::InCache if self.keys < MANY_KEYS => 0.8,
            KeySource::InCache => 0.5,
            KeySource::FromArray => 0.75,
        })
    }

    /// Returns how keys are chosen; `array` is used for [`KeySource::FromArray`].
    #[must_use]
    pub fn draw<'k>(&self, array: &'k [String]) -> Draw<'k> {
        match self.key_source {
            KeySource::Hot => Draw::Hot,
            KeySource::InCache => Draw::Written { below: self.keys, key_format: self.key_format },
            KeySource::FromArray => Draw::Array(array),
        }
    }

    /// Returns the name in the tables.
    #[must_use]
    pub fn label(&self) -> String {
        let key_source = match self.key_source {
            KeySource::Hot => "hot",
            KeySource::InCache => "in cache",
            KeySource::FromArray => "from an array",
        };
        let keys = match (self.keys, self.key_format) {
            (1, _) => "1 key".to_owned(),
            (keys, KeyFormat::User) => format!("{} keys", short_count(keys)),
            (keys, KeyFormat::Uuid) => {
                format!("{} keys of {} bytes", short_count(keys), self.key_format.bytes())
            }
        };
        let threads = if self.threads == 1 { "thread" } else { "threads" };
        format!("{keys}, {key_source}, {} {threads}", self.threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_distinguish_workloads() {
        let hot = Workload {
            keys: 1,
            key_format: KeyFormat::User,
            key_source: KeySource::Hot,
            threads: 1,
        };
        assert_eq!(hot.label(), "1 key, hot, 1 thread");
        let short = Workload { keys: 100_000, key_source: KeySource::FromArray, threads: 2, ..hot };
        assert_eq!(short.label(), "100 k keys, from an array, 2 threads");
        let long =
            Workload { key_format: KeyFormat::Uuid, key_source: KeySource::InCache, ..short };
        assert_eq!(long.label(), "100 k keys of 36 bytes, in cache, 2 threads");
    }

    #[test]
    fn target_depends_on_number_and_source_of_keys() {
        let hot = Workload {
            keys: 1,
            key_format: KeyFormat::User,
            key_source: KeySource::Hot,
            threads: 1,
        };
        assert_eq!(hot.target(), Target::AtMost(1.0));
        for (keys, key_source, bound) in [
            (1_000, KeySource::InCache, 0.8),
            (10_000, KeySource::InCache, 0.8),
            (100_000, KeySource::InCache, 0.5),
            (1_000_000, KeySource::InCache, 0.5),
            (100_000, KeySource::FromArray, 0.75),
        ] {
            for key_format in KeyFormat::ALL {
                let workload = Workload { keys, key_format, key_source, ..hot };
                assert_eq!(workload.target(), Target::AtMost(bound), "{workload:?}");
            }
        }
    }
}

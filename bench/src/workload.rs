//! What is asked of every entrant.

use crate::keys::{Draw, Shape};
use crate::markdown::Target;
use crate::scale::spoken;

/// Where a decision finds its key's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// In one place, always the same.
    Hot,
    /// Just written, hence in cache.
    InCache,
    /// Somewhere in a large array.
    FromArray,
}

/// So many keys, asked for in one way by so many threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// How many keys there are.
    pub keys: u32,
    /// What they look like.
    pub shape: Shape,
    /// Where their text is.
    pub reading: Reading,
    /// How many threads ask.
    pub threads: u32,
}

impl Workload {
    /// The most that it may cost as a multiple of governor.
    #[must_use]
    pub fn target(&self) -> Target {
        Target::AtMost(if self.reading == Reading::Hot { 1.0 } else { 0.5 })
    }

    /// How its keys are drawn, the last way from this array.
    #[must_use]
    pub fn draw<'k>(&self, array: &'k [String]) -> Draw<'k> {
        match self.reading {
            Reading::Hot => Draw::Hot,
            Reading::InCache => Draw::Written { below: self.keys, shape: self.shape },
            Reading::FromArray => Draw::Array(array),
        }
    }

    /// Its name in the tables.
    #[must_use]
    pub fn label(&self) -> String {
        let reading = match self.reading {
            Reading::Hot => "hot",
            Reading::InCache => "in cache",
            Reading::FromArray => "from an array",
        };
        let keys = match (self.keys, self.shape) {
            (1, _) => "1 key".to_owned(),
            (keys, Shape::User) => format!("{} keys", spoken(keys)),
            (keys, Shape::Uuid) => format!("{} keys of {} bytes", spoken(keys), self.shape.bytes()),
        };
        let threads = if self.threads == 1 { "thread" } else { "threads" };
        format!("{keys}, {reading}, {} {threads}", self.threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_tell_workloads_apart() {
        let hot = Workload { keys: 1, shape: Shape::User, reading: Reading::Hot, threads: 1 };
        assert_eq!(hot.label(), "1 key, hot, 1 thread");
        let short = Workload { keys: 100_000, reading: Reading::FromArray, threads: 2, ..hot };
        assert_eq!(short.label(), "100 k keys, from an array, 2 threads");
        let long = Workload { shape: Shape::Uuid, reading: Reading::InCache, ..short };
        assert_eq!(long.label(), "100 k keys of 36 bytes, in cache, 2 threads");
    }

    #[test]
    fn a_hot_key_may_cost_as_much_as_governors() {
        let hot = Workload { keys: 1, shape: Shape::User, reading: Reading::Hot, threads: 1 };
        assert_eq!(hot.target(), Target::AtMost(1.0));
        assert_eq!(Workload { reading: Reading::InCache, ..hot }.target(), Target::AtMost(0.5));
    }
}

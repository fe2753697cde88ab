//! Puts the lines of one file in the order of their times.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::arena::{Arena, Place};

/// How much earlier than a previous line a line can be, in microseconds: 5 minutes.
const MAX_DISORDER: u64 = 5 * 60 * 1_000_000;

/// Maximum number of buffered lines. At a higher rate less disorder is tolerated.
const MAX_LINES: usize = 500_000;

/// Lines that later lines could still precede.
#[derive(Debug, Default)]
pub(super) struct Reorder {
    /// Lines that came in order.
    in_order: VecDeque<Waiting>,
    /// Lines that came after a later one.
    early: BinaryHeap<Reverse<Waiting>>,
    arena: Arena,
    added: u64,
    latest: u64,
    /// Time of the last line that was emitted.
    last_emitted: u64,
    is_ended: bool,
}

/// A buffered line. The order is that of times, then that in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    at: u64,
    sequence: u64,
    place: Place,
}

impl Reorder {
    /// Adds a line. Returns false if it is too late: earlier than a line that was emitted already, or than the maximum
    /// disorder allows.
    pub(super) fn add(&mut self, at: u64, facts: &[u8]) -> bool {
        if at < self.last_emitted || at.saturating_add(MAX_DISORDER) < self.latest {
            return false;
        }
        self.latest = self.latest.max(at);
        self.added += 1;
        let waiting = Waiting { at, sequence: self.added, place: self.arena.add(facts) };
        if self.in_order.back().is_none_or(|last| last.at <= at) {
            self.in_order.push_back(waiting);
        } else {
            self.early.push(Reverse(waiting));
        }
        true
    }

    /// No more lines will be added.
    pub(super) fn end(&mut self) {
        self.is_ended = true;
    }

    /// Returns the time of the next line, if no line that is added later can precede it.
    pub(super) fn next_at(&self) -> Option<u64> {
        let next = self.next()?;
        let is_final = self.is_ended
            || next.at.saturating_add(MAX_DISORDER) < self.latest
            || self.len() >= MAX_LINES;
        is_final.then_some(next.at)
    }

    /// Removes the next line and appends its facts to `out`.
    pub(super) fn take_next(&mut self, out: &mut Vec<u8>) {
        let Some(next) = self.next() else { return };
        if self.in_order.front() == Some(&next) {
            self.in_order.pop_front();
        } else {
            self.early.pop();
        }
        self.last_emitted = next.at;
        self.arena.take(next.place, out);
    }

    fn next(&self) -> Option<Waiting> {
        let early = self.early.peek().map(|Reverse(waiting)| waiting);
        self.in_order.front().into_iter().chain(early).min().copied()
    }

    fn len(&self) -> usize {
        self.in_order.len() + self.early.len()
    }
}

#[cfg(test)]
mod tests {
    use tollgate_testkit::random::Random;

    use super::*;

    fn drain(reorder: &mut Reorder) -> Vec<(u64, Vec<u8>)> {
        let mut drained = Vec::new();
        while let Some(at) = reorder.next_at() {
            let mut facts = Vec::new();
            reorder.take_next(&mut facts);
            drained.push((at, facts));
        }
        drained
    }

    #[test]
    fn five_minutes_of_disorder_are_sorted_and_more_is_late() {
        let mut reorder = Reorder::default();
        assert!(reorder.add(MAX_DISORDER, b"second"));
        assert!(reorder.add(0, b"first"), "exactly five minutes before");
        assert!(reorder.add(MAX_DISORDER, b"third"), "equal times keep their order");
        assert_eq!(drain(&mut reorder), [], "a line could still precede");
        assert!(reorder.add(MAX_DISORDER + 1, b"fourth"));
        assert!(!reorder.add(0, b"late"));
        reorder.end();
        let texts: Vec<Vec<u8>> = drain(&mut reorder).into_iter().map(|(_, facts)| facts).collect();
        assert_eq!(texts, [&b"first"[..], b"second", b"third", b"fourth"]);
    }

    #[test]
    fn the_number_of_buffered_lines_is_bounded() {
        let mut reorder = Reorder::default();
        let mut out = Vec::new();
        for _ in 0..MAX_LINES + 10_000 {
            assert!(reorder.add(7, b"x"));
            if reorder.next_at().is_some() {
                reorder.take_next(&mut out);
            }
        }
        assert!(reorder.len() <= MAX_LINES);
    }

    #[test]
    fn random_disorder_leaves_sorted_and_equal_times_keep_their_order() {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let (mut reorder, mut added, mut emitted) =
                (Reorder::default(), Vec::new(), Vec::new());
            let (step, mut clock) = (random.magnitude(MAX_DISORDER / 20), MAX_DISORDER);
            for number in 0..2000_u32 {
                clock += random.within(0, step);
                // A few coarse delays, so that many times are equal.
                let delay = random.within(0, 3) * (MAX_DISORDER / 3);
                let at = clock - clock % step.div_ceil(2) - delay.min(MAX_DISORDER - step);
                if reorder.add(at, &number.to_le_bytes()) {
                    added.push((at, number.to_le_bytes().to_vec()));
                }
                if random.one_in(3) {
                    emitted.extend(drain(&mut reorder));
                }
            }
            reorder.end();
            emitted.extend(drain(&mut reorder));
            assert!(added.len() > 1000 && !added.is_sorted(), "seed {seed}: {}", added.len());
            added.sort_by_key(|(at, _)| *at);
            assert_eq!(emitted, added, "seed {seed}");
            assert_eq!(reorder.len(), 0);
        }
    }
}

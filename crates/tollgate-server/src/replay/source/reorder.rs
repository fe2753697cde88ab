//! Puts the lines of one file in the order of their times.

use std::collections::VecDeque;

use super::arena::{Arena, Place};

/// How much earlier than a previous line a line can be, in microseconds: 5 minutes.
const MAX_DISORDER: u64 = 5 * 60 * 1_000_000;

/// Maximum number of buffered lines. At a higher rate less disorder is tolerated.
const MAX_LINES: usize = 500_000;

/// Lines that later lines could still precede.
#[derive(Debug, Default)]
pub(super) struct Reorder {
    lines: VecDeque<Waiting>,
    arena: Arena,
    latest: u64,
    /// Time of the last line that has left.
    left: u64,
    is_ended: bool,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    at: u64,
    place: Place,
}

impl Reorder {
    /// Adds a line. Returns false if it is too late: earlier than a line that has left already, or than the maximum
    /// disorder allows.
    pub(super) fn add(&mut self, at: u64, facts: &[u8]) -> bool {
        if at < self.left || at.saturating_add(MAX_DISORDER) < self.latest {
            return false;
        }
        self.latest = self.latest.max(at);
        let waiting = Waiting { at, place: self.arena.add(facts) };
        // Lines are almost in order: search from the end.
        let later = self.lines.iter().rev().take_while(|other| other.at > at).count();
        self.lines.insert(self.lines.len() - later, waiting);
        true
    }

    /// No more lines will be added.
    pub(super) fn end(&mut self) {
        self.is_ended = true;
    }

    /// Returns the time of the next line, if no line that is added later can precede it.
    pub(super) fn next_at(&self) -> Option<u64> {
        let next = self.lines.front()?;
        let is_final = self.is_ended
            || next.at.saturating_add(MAX_DISORDER) < self.latest
            || self.lines.len() >= MAX_LINES;
        is_final.then_some(next.at)
    }

    /// Removes the next line and appends its facts to `out`.
    pub(super) fn take_next(&mut self, out: &mut Vec<u8>) {
        if let Some(next) = self.lines.pop_front() {
            self.left = next.at;
            self.arena.take(next.place, out);
        }
    }
}

#[cfg(test)]
mod tests {
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
        assert!(reorder.lines.len() <= MAX_LINES);
    }
}

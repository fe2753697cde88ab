//! Storage for the facts of buffered lines: chunks that are reused once all their lines have left.

use std::collections::VecDeque;

const CHUNK: usize = 256 * 1024;

/// Bytes of lines that leave in about the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Arena {
    chunks: VecDeque<Chunk>,
    /// Number of chunks that have been removed from the front.
    removed: u64,
    spare: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Chunk {
    bytes: Vec<u8>,
    lines: usize,
}

/// Place of a line's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    chunk: u64,
    start: usize,
    length: usize,
}

impl Arena {
    pub(super) fn add(&mut self, bytes: &[u8]) -> Place {
        let is_full = |chunk: &Chunk| chunk.bytes.len() + bytes.len() > CHUNK;
        if self.chunks.back().is_none_or(is_full) {
            let bytes = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK));
            self.chunks.push_back(Chunk { bytes, lines: 0 });
        }
        let number = self.removed + u64::try_from(self.chunks.len()).unwrap_or(0) - 1;
        let mut place = Place { chunk: number, start: 0, length: bytes.len() };
        if let Some(chunk) = self.chunks.back_mut() {
            place.start = chunk.bytes.len();
            chunk.bytes.extend_from_slice(bytes);
            chunk.lines += 1;
        }
        place
    }

    /// Appends the bytes of a line to `out` and frees its place.
    pub(super) fn take(&mut self, place: Place, out: &mut Vec<u8>) {
        let index = usize::try_from(place.chunk - self.removed).unwrap_or(usize::MAX);
        if let Some(chunk) = self.chunks.get_mut(index) {
            out.extend_from_slice(
                chunk.bytes.get(place.start..place.start + place.length).unwrap_or_default(),
            );
            chunk.lines -= 1;
        }
        while self.chunks.front().is_some_and(|chunk| chunk.lines == 0) {
            if let Some(mut chunk) = self.chunks.pop_front() {
                self.removed += 1;
                chunk.bytes.clear();
                if self.spare.is_empty() {
                    self.spare.push(chunk.bytes);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_freed_when_their_lines_have_left() {
        let mut arena = Arena::default();
        let mut places = VecDeque::new();
        for number in 0..200_000_u32 {
            places.push_back((number, arena.add(&number.to_le_bytes())));
            if places.len() > 100 {
                let (expected, place) = places.pop_front().unwrap();
                let mut out = Vec::new();
                arena.take(place, &mut out);
                assert_eq!(out, expected.to_le_bytes());
            }
        }
        assert!(arena.chunks.len() <= 2, "{}", arena.chunks.len());
    }
}

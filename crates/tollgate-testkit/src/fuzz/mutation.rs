//! Mutations of inputs: bytes, ranges, numbers, words of a dictionary, and parts of other inputs.

use crate::random::Random;

/// Numbers at which parsers change their behaviour.
const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "-1",
    "2",
    "9",
    "10",
    "63",
    "64",
    "255",
    "1024",
    "65536",
    "2147483648",
    "9007199254740991",
    "9007199254740992",
    "9223372036854775807",
    "18446744073709551616",
];

/// Bytes with a meaning in text formats, and the bounds of the classes of bytes.
const BYTES: &[u8] = b"\0\t\n\r \"#$%&'*+,-./0159:;<=>?@AZ[\\]_az{|}~\x7f\x80\xbf\xc3\xf0\xff";

/// Maximum number of edits of one mutation.
const MAX_EDITS: u64 = 8;

/// Maximum length of a range that one edit copies or removes.
const MAX_RANGE: u64 = 64;

#[derive(Debug)]
pub(super) struct Mutator {
    random: Random,
    dictionary: Vec<&'static [u8]>,
    max_length: usize,
}

impl Mutator {
    pub(super) const fn new(
        random: Random,
        dictionary: Vec<&'static [u8]>,
        max_length: usize,
    ) -> Self {
        Self { random, dictionary, max_length }
    }

    /// Replaces `input` by a mutation of a random input of the pool, of which the first `seeds` are the corpus. Every
    /// second mutation is one of the corpus, because most others are invalid.
    pub(super) fn mutate(&mut self, pool: &[Vec<u8>], seeds: usize, input: &mut Vec<u8>) {
        input.clear();
        let parents = if self.random.one_in(2) { &pool[..seeds] } else { pool };
        if let Some(parent) = self.random.pick(parents) {
            input.extend_from_slice(parent);
        }
        let edits = if self.random.one_in(2) { 1 } else { self.random.magnitude(MAX_EDITS) };
        for _ in 0..edits {
            self.edit(pool, input);
        }
        input.truncate(self.max_length);
    }

    fn edit(&mut self, pool: &[Vec<u8>], input: &mut Vec<u8>) {
        let at = self.position(input.len());
        match self.random.within(0, 9) {
            0 => self.flip_bit(input, at),
            1 => {
                let byte = self.byte();
                replace(input, at, 1, &[byte]);
            }
            2 => {
                let byte = self.byte();
                replace(input, at, 0, &[byte]);
            }
            3 => replace(input, at, self.range_length(), &[]),
            4 => self.copy_range(input, at),
            5 => self.replace_number(input, at),
            6 | 7 => self.insert_word(input, at),
            8 => self.splice(pool, input, at),
            _ => self.truncate_rarely(input, at),
        }
    }

    /// Returns a position from 0 to `length`.
    fn position(&mut self, length: usize) -> usize {
        let position = self.random.within(0, u64::try_from(length).unwrap_or(0));
        usize::try_from(position).unwrap_or(0)
    }

    fn range_length(&mut self) -> usize {
        usize::try_from(self.random.magnitude(MAX_RANGE)).unwrap_or(1)
    }

    fn byte(&mut self) -> u8 {
        match self.random.one_in(4) {
            true => self.random.draw().to_le_bytes()[0],
            false => self.random.pick(BYTES).copied().unwrap_or(0),
        }
    }

    fn flip_bit(&mut self, input: &mut [u8], at: usize) {
        let bit = self.random.within(0, 7);
        if let Some(byte) = input.get_mut(at) {
            *byte ^= 1 << bit;
        }
    }

    /// Copies a range of the input to another position.
    fn copy_range(&mut self, input: &mut Vec<u8>, at: usize) {
        let end = at.saturating_add(self.range_length()).min(input.len());
        let range = input[at..end].to_vec();
        let target = self.position(input.len());
        for _ in 0..self.random.magnitude(4) {
            replace(input, target, 0, &range);
        }
    }

    /// Replaces the first number after a position.
    fn replace_number(&mut self, input: &mut Vec<u8>, at: usize) {
        let Some(start) = input[at..].iter().position(u8::is_ascii_digit) else { return };
        let start = at + start;
        let digits = input[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = self.random.pick(&NUMBERS).copied().unwrap_or("0");
        replace(input, start, digits, number.as_bytes());
    }

    /// Inserts a word of the dictionary, or writes it over the input.
    fn insert_word(&mut self, input: &mut Vec<u8>, at: usize) {
        if let Some(&word) = self.random.pick(&self.dictionary) {
            let replaced = if self.random.one_in(2) { word.len() } else { 0 };
            replace(input, at, replaced, word);
        }
    }

    /// Replaces the end of the input by the end of another.
    fn splice(&mut self, pool: &[Vec<u8>], input: &mut Vec<u8>, at: usize) {
        if let Some(other) = self.random.pick(pool) {
            let from = self.position(other.len());
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
    }

    fn truncate_rarely(&mut self, input: &mut Vec<u8>, at: usize) {
        if self.random.one_in(4) {
            input.truncate(at);
        }
    }
}

/// Replaces up to `length` bytes from a position.
fn replace(input: &mut Vec<u8>, at: usize, length: usize, by: &[u8]) {
    let end = at.saturating_add(length).min(input.len());
    input.splice(at..end, by.iter().copied());
}

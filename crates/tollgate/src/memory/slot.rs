//! A slot: one key and its state.
//!
//! Most keys are short and most limits are token buckets, and where there are many keys the time goes
//! into reading them from memory. Such a key and its bucket fit 32 bytes, half a cache line. All
//! others live behind a pointer.

use std::hash::{BuildHasher, Hasher};

use super::register::{Entries, RateNumber, Register, Registered};
use crate::algorithm::{Bucket, Op, Reply, State};
use crate::limit::Limit;
use crate::time::Timestamp;

/// Subjects up to this long may live in the slot itself.
const SHORT: usize = 15;

/// What no text in UTF-8 contains.
const PADDING: u8 = 0xFF;

/// Odd, and with bits all over: one subject's keys under different scopes land far apart.
const SCOPE_STRIDE: u64 = 0x9E37_79B9_7F4A_7C15;

/// What a key is looked up by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name<'a> {
    registered: Registered,
    subject: &'a [u8],
    short: Option<Short>,
}

/// A short subject, padded, as its first eight bytes and its last: to compare it is to compare two
/// words, without a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Short {
    head: u64,
    tail: u64,
}

/// A place for a key.
#[derive(Debug, Default)]
#[repr(align(32))]
pub(super) struct Slot(Kept);

#[derive(Debug, Default)]
enum Kept {
    #[default]
    Nothing,
    Bucket {
        subject: Padded,
        bucket: Packed,
    },
    Any(Box<Any>),
}

/// A short subject's bytes, and padding.
#[derive(Debug, Clone, Copy)]
struct Padded([u8; SHORT]);

/// A token bucket. Time and deficit are below 2^54; the two bytes of the rate's number take the place
/// of their highest.
#[derive(Debug, Clone, Copy)]
struct Packed {
    at: u64,
    deficit: u64,
}

#[derive(Debug)]
struct Any {
    scope: u32,
    subject: Box<[u8]>,
    state: State,
}

impl<'a> Name<'a> {
    #[inline]
    pub(super) fn new(registered: Registered, subject: &'a [u8]) -> Self {
        // Only buckets whose rate has a number are ever kept by a short name.
        let short = registered.rate.and_then(|_| Short::new(subject));
        Self { registered, subject, short }
    }

    #[inline]
    pub(super) fn hash(&self, hasher: &impl BuildHasher) -> u64 {
        hash(self.registered.scope, self.subject, hasher)
    }
}

#[inline]
fn hash(scope: u32, subject: &[u8], hasher: &impl BuildHasher) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(subject);
    hasher.finish().wrapping_add(u64::from(scope).wrapping_mul(SCOPE_STRIDE))
}

impl Slot {
    pub(super) fn new(name: &Name<'_>, state: State, limit: &Limit) -> Self {
        let mut slot = Self(Kept::Any(Box::new(Any::new(name, state))));
        slot.tighten(name, limit);
        slot
    }

    #[inline]
    pub(super) fn is_named(&self, name: &Name<'_>, register: &Register) -> bool {
        match &self.0 {
            Kept::Nothing => false,
            Kept::Bucket { subject, bucket } => {
                let same_rate = name.registered.rate == Some(bucket.rate());
                if same_rate {
                    name.short == Some(subject.short())
                } else {
                    self.is_renumbered(name, register)
                }
            }
            Kept::Any(any) => any.scope == name.registered.scope && *any.subject == *name.subject,
        }
    }

    /// Whether it is this name's after all, under numbers that have changed since.
    #[cold]
    fn is_renumbered(&self, name: &Name<'_>, register: &Register) -> bool {
        self.subject() == name.subject
            && self.scope(&register.read()) == Some(name.registered.scope)
    }

    /// Applies `op` to the key, which belongs to `name` and `limit`.
    #[inline(always)]
    pub(super) fn step(
        &mut self,
        name: &Name<'_>,
        limit: &Limit,
        register: &Register,
        now: Timestamp,
        op: Op,
    ) -> Reply {
        if let Kept::Bucket { bucket: packed, .. } = &mut self.0
            && let Some(rate) = name.registered.rate.filter(|rate| packed.rate() == *rate)
            && let Some(numbers) = limit.numbers().as_token_bucket()
        {
            let mut bucket = numbers.state(packed.at(), packed.deficit());
            let reply = numbers.step(&mut bucket, now.as_micros(), op);
            *packed = Packed::new(rate, &bucket);
            return reply;
        }
        self.with_state(name, limit, register, |state| limit.numbers().step(state, now, op))
    }

    /// Runs `action` on the state of the key, which belongs to `name` and `limit`.
    #[cold]
    #[inline(never)]
    pub(super) fn with_state<T>(
        &mut self,
        name: &Name<'_>,
        limit: &Limit,
        register: &Register,
        action: impl FnOnce(&mut State) -> T,
    ) -> T {
        if let Kept::Bucket { bucket, .. } = &self.0 {
            let bucket = bucket.unpack(&register.read());
            self.0 = Kept::Any(Box::new(Any::new(name, State::Bucket(bucket))));
        }
        let mut unseen = State::Fresh;
        let answer = match &mut self.0 {
            Kept::Any(any) => action(&mut any.state),
            _ => action(&mut unseen),
        };
        self.tighten(name, limit);
        answer
    }

    /// Keeps a bucket in the slot itself where that can be done.
    fn tighten(&mut self, name: &Name<'_>, limit: &Limit) {
        if let Kept::Any(any) = &self.0
            && let State::Bucket(bucket) = &any.state
            && let (Some(rate), Some(subject)) = (name.registered.rate, name.short)
            && limit.numbers().as_token_bucket().is_some_and(|numbers| bucket.is_of(numbers))
        {
            self.0 = Kept::Bucket { subject: subject.padded(), bucket: Packed::new(rate, bucket) };
        }
    }

    pub(super) fn is_fresh(&self, now: Timestamp, entries: &Entries) -> bool {
        match &self.0 {
            Kept::Nothing => true,
            Kept::Bucket { bucket, .. } => State::Bucket(bucket.unpack(entries)).is_fresh(now),
            Kept::Any(any) => any.state.is_fresh(now),
        }
    }

    pub(super) fn scope(&self, entries: &Entries) -> Option<u32> {
        match &self.0 {
            Kept::Nothing => None,
            Kept::Bucket { bucket, .. } => Some(entries.scope_of(bucket.rate())),
            Kept::Any(any) => Some(any.scope),
        }
    }

    pub(super) fn subject(&self) -> &[u8] {
        match &self.0 {
            Kept::Nothing => &[],
            Kept::Bucket { subject, .. } => subject.text(),
            Kept::Any(any) => &any.subject,
        }
    }

    pub(super) fn hash(&self, entries: &Entries, hasher: &impl BuildHasher) -> u64 {
        hash(self.scope(entries).unwrap_or_default(), self.subject(), hasher)
    }
}

impl Any {
    fn new(name: &Name<'_>, state: State) -> Self {
        Self { scope: name.registered.scope, subject: name.subject.into(), state }
    }
}

impl Packed {
    const LOW: u64 = (1 << 56) - 1;

    #[inline]
    fn at(&self) -> u64 {
        self.at & Self::LOW
    }

    #[inline]
    fn deficit(&self) -> u64 {
        self.deficit & Self::LOW
    }

    #[inline]
    fn rate(&self) -> RateNumber {
        RateNumber::from_bytes([self.at.to_be_bytes()[0], self.deficit.to_be_bytes()[0]])
    }

    #[inline]
    fn new(rate: RateNumber, bucket: &Bucket) -> Self {
        let [high, low] = rate.to_bytes().map(u64::from);
        Self { at: high << 56 | bucket.at(), deficit: low << 56 | bucket.deficit() }
    }

    fn unpack(&self, entries: &Entries) -> Bucket {
        entries.bucket(self.rate(), self.at(), self.deficit())
    }
}

impl Padded {
    #[inline]
    fn short(&self) -> Short {
        let [head @ .., _, _, _, _, _, _, _] = self.0;
        let [_, _, _, _, _, _, _, tail @ ..] = self.0;
        Short { head: u64::from_le_bytes(head), tail: u64::from_le_bytes(tail) }
    }

    fn text(&self) -> &[u8] {
        let length = self.0.iter().position(|byte| *byte == PADDING).unwrap_or(SHORT);
        self.0.get(..length).unwrap_or_default()
    }
}

impl Short {
    /// The subject's words, put together from overlapping pieces of known length.
    #[inline]
    fn new(subject: &[u8]) -> Option<Self> {
        let length = subject.len();
        // Ones from this byte on: what lies behind the text is padding.
        let from = |byte: usize| if byte < 8 { u64::MAX << (8 * byte) } else { 0 };
        let short = match length {
            8..=SHORT => {
                let last = u64::from_le_bytes(*subject.last_chunk()?);
                Self {
                    head: u64::from_le_bytes(*subject.first_chunk()?),
                    tail: last >> (8 * (SHORT - length)) | from(length - 7),
                }
            }
            4..=7 => {
                let first = u32::from_le_bytes(*subject.first_chunk()?);
                let last = u32::from_le_bytes(*subject.last_chunk()?);
                let text = u64::from(first) | u64::from(last) << (8 * (length - 4));
                Self { head: text | from(length), tail: u64::MAX }
            }
            0..=3 => {
                let text = subject.iter().rev().fold(0, |text, byte| text << 8 | u64::from(*byte));
                Self { head: text | from(length), tail: u64::MAX }
            }
            _ => return None,
        };
        Some(short)
    }

    fn padded(self) -> Padded {
        let (head, tail) = (self.head.to_le_bytes(), self.tail.to_le_bytes());
        let mut bytes = [PADDING; SHORT];
        // The last byte of the head is the first of the tail.
        let together = head.into_iter().chain(tail.into_iter().skip(1));
        for (to, from) in bytes.iter_mut().zip(together) {
            *to = from;
        }
        Padded(bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_slot_is_half_a_cache_line() {
        assert_eq!((size_of::<Slot>(), align_of::<Slot>()), (32, 32));
    }

    proptest! {
        #[test]
        fn short_subjects_come_back(subject in "\\PC{0,16}") {
            let Some(short) = Short::new(subject.as_bytes()) else {
                prop_assert!(subject.len() > SHORT);
                return Ok(());
            };
            let padded = short.padded();
            prop_assert_eq!(padded.text(), subject.as_bytes());
            prop_assert_eq!(padded.short(), short);
        }

        #[test]
        fn packed_numbers_come_back(at in 0u64..1 << 53, deficit in 0u64..=1 << 53, rate: [u8; 2]) {
            let quota = crate::Quota::new(1, std::time::Duration::from_micros(1));
            let limit = Limit::token_bucket(quota).unwrap();
            let bucket = limit.numbers().as_token_bucket().unwrap().state(at, deficit);
            let packed = Packed::new(RateNumber::from_bytes(rate), &bucket);
            prop_assert_eq!((packed.at(), packed.deficit()), (at, deficit));
            prop_assert_eq!(packed.rate(), RateNumber::from_bytes(rate));
        }
    }
}

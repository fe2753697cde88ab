//! A slot: one key and its state.
//!
//! Most keys are short and most limits are token buckets, and where there are many keys the time goes
//! into reading them from memory. Such a key and its bucket fit 32 bytes, half a cache line. All
//! others live behind a pointer.

use std::hash::{BuildHasher, Hasher};

use super::packed::{Packed, Padded, Short};
use super::register::{Entries, Register, Registered};
use crate::algorithm::{Op, Reply, State};
use crate::limit::Limit;
use crate::time::Timestamp;

/// Odd, and with bits all over: one subject's keys under different scopes land far apart.
const SCOPE_STRIDE: u64 = 0x9E37_79B9_7F4A_7C15;

/// What a key is looked up by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name<'a> {
    registered: Registered,
    subject: &'a [u8],
    short: Option<Short>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_half_a_cache_line() {
        assert_eq!((size_of::<Slot>(), align_of::<Slot>()), (32, 32));
    }
}

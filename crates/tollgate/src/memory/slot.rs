//! A slot: one key and its state.
//!
//! Most limits are token buckets and most keys are short, and where there are many keys the time goes
//! into reading them from memory. Such a key and its bucket fit 32 bytes, half a cache line; of a long
//! key the text is elsewhere. All other states live behind a pointer.

use std::hash::{BuildHasher, Hasher};

use super::packed::{Packed, Padded, Short, Tight};
use super::register::{Entries, LimitNumber, Register, Registered, WRITTEN_OUT};
use crate::algorithm::{Bucket, Op, Reply, State};
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
    Short {
        subject: Padded,
        bucket: Packed,
    },
    Long {
        subject: Box<[u8]>,
        bucket: Tight,
    },
    Any(Box<Any>),
}

#[derive(Debug)]
struct Any {
    scope: u32,
    /// Under which limit it was last seen.
    limit: LimitNumber,
    subject: Box<[u8]>,
    state: State,
}

impl<'a> Name<'a> {
    #[inline]
    pub(super) fn new(registered: Registered, subject: &'a [u8]) -> Self {
        // Only a token bucket with a number is ever kept by a short name.
        let short = if registered.limit.is_bucket() { Short::new(subject) } else { None };
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
        let packed = match &state {
            State::Bucket(bucket) => pack(name, bucket, limit),
            _ => None,
        };
        Self(packed.unwrap_or_else(|| Kept::Any(Box::new(Any::new(name, state)))))
    }

    /// A key as it was, under the limit it was last seen under.
    pub(super) fn restored(name: &Name<'_>, state: State, limit: Option<&Limit>) -> Self {
        match limit {
            Some(limit) => Self::new(name, state, limit),
            None => Self(Kept::Any(Box::new(Any::new(name, state)))),
        }
    }

    #[inline]
    pub(super) fn is_named(&self, name: &Name<'_>, register: &Register) -> bool {
        match &self.0 {
            Kept::Nothing => false,
            Kept::Short { subject, bucket } => {
                if name.registered.limit == bucket.limit() {
                    name.short == Some(subject.short())
                } else {
                    self.is_renumbered(name, register)
                }
            }
            Kept::Long { subject, bucket } => {
                if name.registered.limit == Packed::from(*bucket).limit() {
                    **subject == *name.subject
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
        let number = name.registered.limit;
        if let Some(numbers) = limit.parameters().as_token_bucket() {
            match &mut self.0 {
                Kept::Short { bucket, .. } if bucket.limit() == number => {
                    let (reply, after) = bucket.step(number, numbers, now, op);
                    *bucket = after;
                    return reply;
                }
                Kept::Long { bucket, .. } if Packed::from(*bucket).limit() == number => {
                    let (reply, after) = Packed::from(*bucket).step(number, numbers, now, op);
                    *bucket = after.into();
                    return reply;
                }
                _ => {}
            }
        }
        self.with_state(name, limit, register, |state| limit.parameters().step(state, now, op))
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
        if let Some(packed) = self.packed() {
            let bucket = packed.unpack(&register.read());
            self.0 = Kept::Any(Box::new(Any::new(name, State::Bucket(bucket))));
        }
        let mut unseen = State::Fresh;
        let answer = match &mut self.0 {
            Kept::Any(any) => {
                any.limit = name.registered.limit;
                action(&mut any.state)
            }
            _ => action(&mut unseen),
        };
        if let Kept::Any(any) = &self.0
            && let State::Bucket(bucket) = &any.state
            && let Some(packed) = pack(name, bucket, limit)
        {
            self.0 = packed;
        }
        answer
    }

    /// Its state, unless that is a bucket packed into the slot.
    pub(super) fn state_mut(&mut self) -> Option<&mut State> {
        match &mut self.0 {
            Kept::Any(any) => Some(&mut any.state),
            _ => None,
        }
    }

    fn packed(&self) -> Option<Packed> {
        match &self.0 {
            Kept::Short { bucket, .. } => Some(*bucket),
            Kept::Long { bucket, .. } => Some((*bucket).into()),
            Kept::Nothing | Kept::Any(_) => None,
        }
    }

    pub(super) fn is_fresh(&self, now: Timestamp, entries: &Entries) -> bool {
        match (&self.0, self.packed()) {
            (Kept::Any(any), _) => any.state.is_fresh(now),
            (_, Some(packed)) => State::Bucket(packed.unpack(entries)).is_fresh(now),
            (_, None) => true,
        }
    }

    /// Its scope, and the limit it was last seen under.
    pub(super) fn registered(&self, entries: &Entries) -> Option<Registered> {
        match &self.0 {
            Kept::Any(any) => Some(Registered { scope: any.scope, limit: any.limit }),
            _ => self.packed().map(|packed| {
                let limit = packed.limit();
                Registered { scope: entries.scope_of(limit), limit }
            }),
        }
    }

    pub(super) fn scope(&self, entries: &Entries) -> Option<u32> {
        self.registered(entries).map(|registered| registered.scope)
    }

    pub(super) fn subject(&self) -> &[u8] {
        match &self.0 {
            Kept::Nothing => &[],
            Kept::Short { subject, .. } => subject.text(),
            Kept::Long { subject, .. } => subject,
            Kept::Any(any) => &any.subject,
        }
    }

    /// The scope's text and the subject.
    pub(super) fn key<'s>(&'s self, entries: &'s Entries) -> Option<(&'s str, &'s str)> {
        let subject = std::str::from_utf8(self.subject()).ok()?;
        match self.scope(entries)? {
            WRITTEN_OUT => subject.split_once('\0'),
            numbered => Some((entries.text(numbered)?, subject)),
        }
    }

    /// Writes its state down.
    pub(super) fn save(&self, entries: &Entries, out: &mut Vec<u8>) {
        match (&self.0, self.packed()) {
            (Kept::Any(any), _) => any.state.save(out),
            (_, Some(packed)) => State::Bucket(packed.unpack(entries)).save(out),
            (_, None) => State::Fresh.save(out),
        }
    }

    pub(super) fn hash(&self, entries: &Entries, hasher: &impl BuildHasher) -> u64 {
        hash(self.scope(entries).unwrap_or_default(), self.subject(), hasher)
    }
}

/// A bucket as it is kept in the slot itself, where its limit has a number.
fn pack(name: &Name<'_>, bucket: &Bucket, limit: &Limit) -> Option<Kept> {
    let number = Some(name.registered.limit).filter(|number| number.is_bucket())?;
    let numbers = limit.parameters().as_token_bucket().filter(|numbers| bucket.is_of(numbers));
    let bucket = numbers.map(|_| Packed::new(number, bucket))?;
    Some(match name.short {
        Some(subject) => Kept::Short { subject: subject.padded(), bucket },
        None => Kept::Long { subject: name.subject.into(), bucket: bucket.into() },
    })
}

impl Any {
    fn new(name: &Name<'_>, state: State) -> Self {
        let Registered { scope, limit } = name.registered;
        Self { scope, limit, subject: name.subject.into(), state }
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

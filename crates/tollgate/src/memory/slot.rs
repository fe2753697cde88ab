//! Hash table slot: one key and its state. (Not a concurrency slot.)
//!
//! Most limits are token buckets with short keys, and with many keys most of the time is spent on memory
//! reads. A short key and its bucket therefore fit 32 bytes, half a cache line. The text of a long key is
//! boxed, and so are all other states.

use std::hash::{BuildHasher, Hasher};

use super::packed::{PackedBucket, PackedBucketMut, PackedTime, PaddedSubject, ShortSubject};
use super::registry::{Entries, LimitId, Registered, Registry, UNREGISTERED};
use crate::algorithm::{Bucket, Op, Reply, State};
use crate::limit::Limit;
use crate::time::Timestamp;

/// Odd number with well-distributed bits, which spreads the keys of one subject over the table.
const IDENTITY_STRIDE: u64 = 0x9E37_79B9_7F4A_7C15;

/// Key of a lookup.
#[derive(Debug, Clone, Copy)]
pub(super) struct LookupKey<'a> {
    registered: Registered,
    subject: &'a [u8],
    short: Option<ShortSubject>,
}

/// Slot of a hash table: empty, or one key and its state.
#[derive(Debug, Default)]
#[repr(align(32))]
pub(super) struct Slot(Content);

#[derive(Debug, Default)]
enum Content {
    #[default]
    Empty,
    /// A token bucket, as a [`PackedBucket`] in two parts, and its subject.
    Short {
        time: PackedTime,
        deficit: u64,
        subject: PaddedSubject,
    },
    Long {
        time: PackedTime,
        deficit: u64,
        subject: Box<[u8]>,
    },
    Unpacked(Box<Unpacked>),
}

#[derive(Debug)]
struct Unpacked {
    identity: u32,
    /// Limit of the last operation.
    limit: LimitId,
    subject: Box<[u8]>,
    state: State,
}

impl<'a> LookupKey<'a> {
    #[inline]
    pub(super) fn new(registered: Registered, subject: &'a [u8]) -> Self {
        // Only slots of registered token buckets contain short subjects.
        let short = if registered.limit.is_bucket() { ShortSubject::new(subject) } else { None };
        Self { registered, subject, short }
    }

    #[inline]
    pub(super) fn limit(&self) -> LimitId {
        self.registered.limit
    }

    #[inline]
    pub(super) fn subject(&self) -> &'a [u8] {
        self.subject
    }

    /// The subject, if it is short and the limit a packed bucket.
    #[inline]
    pub(super) fn short(&self) -> Option<ShortSubject> {
        self.short
    }

    #[inline]
    pub(super) fn hash(&self, hasher: &impl BuildHasher) -> u64 {
        hash(self.registered.identity, self.subject, hasher)
    }
}

#[inline]
fn hash(identity: u32, subject: &[u8], hasher: &impl BuildHasher) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(subject);
    hasher.finish().wrapping_add(u64::from(identity).wrapping_mul(IDENTITY_STRIDE))
}

impl Slot {
    pub(super) fn new(lookup: &LookupKey<'_>, state: State, limit: &Limit) -> Self {
        let packed =
            if let State::Bucket(bucket) = &state { pack(lookup, bucket, limit) } else { None };
        Self(packed.unwrap_or_else(|| Content::Unpacked(Box::new(Unpacked::new(lookup, state)))))
    }

    /// Creates a slot from a snapshot, with the limit of the last operation if it is known.
    pub(super) fn restored(lookup: &LookupKey<'_>, state: State, limit: Option<&Limit>) -> Self {
        match limit {
            Some(limit) => Self::new(lookup, state, limit),
            None => Self(Content::Unpacked(Box::new(Unpacked::new(lookup, state)))),
        }
    }

    /// Returns true if the slot is a packed bucket of this limit with a short subject.
    #[inline(always)]
    pub(super) fn is_short(&self, limit: LimitId, short: ShortSubject) -> bool {
        matches!(&self.0, Content::Short { time, deficit, subject }
            if subject.short() == short && PackedBucket::load(*time, *deficit).limit() == limit)
    }

    /// Returns true if the slot is a packed bucket of this limit with a long subject.
    #[inline]
    pub(super) fn is_long(&self, limit: LimitId, long: &[u8]) -> bool {
        matches!(&self.0, Content::Long { time, deficit, subject }
            if PackedBucket::load(*time, *deficit).limit() == limit && **subject == *long)
    }

    /// Returns the packed bucket, if the slot has one.
    #[inline(always)]
    pub(super) fn bucket_mut(&mut self) -> Option<PackedBucketMut<'_>> {
        match &mut self.0 {
            Content::Short { time, deficit, .. } | Content::Long { time, deficit, .. } => {
                Some(PackedBucketMut { time, deficit })
            }
            Content::Empty | Content::Unpacked(_) => None,
        }
    }

    pub(super) fn matches(&self, lookup: &LookupKey<'_>, registry: &Registry) -> bool {
        match &self.0 {
            Content::Empty => false,
            Content::Short { time, deficit, subject } => {
                if lookup.registered.limit == PackedBucket::load(*time, *deficit).limit() {
                    lookup.short == Some(subject.short())
                } else {
                    self.matches_slow(lookup, registry)
                }
            }
            Content::Long { time, deficit, subject } => {
                if lookup.registered.limit == PackedBucket::load(*time, *deficit).limit() {
                    **subject == *lookup.subject
                } else {
                    self.matches_slow(lookup, registry)
                }
            }
            Content::Unpacked(unpacked) => {
                unpacked.identity == lookup.registered.identity
                    && *unpacked.subject == *lookup.subject
            }
        }
    }

    /// Compares subject and identity. The limit's id differs if its parameters have changed.
    #[cold]
    fn matches_slow(&self, lookup: &LookupKey<'_>, registry: &Registry) -> bool {
        self.subject() == lookup.subject
            && self.identity(&registry.read()) == Some(lookup.registered.identity)
    }

    /// Applies `op` to the state. The slot must match `lookup`, whose limit is `limit`.
    #[inline]
    pub(super) fn step(
        &mut self,
        lookup: &LookupKey<'_>,
        limit: &Limit,
        registry: &Registry,
        now: Timestamp,
        op: Op,
    ) -> Reply {
        let id = lookup.registered.limit;
        if let Some(parameters) = limit.parameters().as_token_bucket()
            && let Some(bucket) = self.bucket_mut()
            && bucket.limit() == id
        {
            return bucket.step(id, parameters, now, op);
        }
        self.with_state(lookup, limit, registry, |state| limit.parameters().step(state, now, op))
    }

    /// Runs `action` on the state. The slot must match `lookup`, whose limit is `limit`.
    #[inline(never)]
    pub(super) fn with_state<T>(
        &mut self,
        lookup: &LookupKey<'_>,
        limit: &Limit,
        registry: &Registry,
        action: impl FnOnce(&mut State) -> T,
    ) -> T {
        if let Some(packed) = self.packed() {
            let bucket = packed.unpack(&registry.read());
            self.0 = Content::Unpacked(Box::new(Unpacked::new(lookup, State::Bucket(bucket))));
        }
        let mut fresh = State::Fresh;
        let result = match &mut self.0 {
            Content::Unpacked(unpacked) => {
                unpacked.limit = lookup.registered.limit;
                action(&mut unpacked.state)
            }
            _ => action(&mut fresh),
        };
        if let Content::Unpacked(unpacked) = &self.0
            && let State::Bucket(bucket) = &unpacked.state
            && let Some(packed) = pack(lookup, bucket, limit)
        {
            self.0 = packed;
        }
        result
    }

    /// Returns the state, or `None` if it is a packed token bucket.
    pub(super) fn state_mut(&mut self) -> Option<&mut State> {
        match &mut self.0 {
            Content::Unpacked(unpacked) => Some(&mut unpacked.state),
            _ => None,
        }
    }

    fn packed(&self) -> Option<PackedBucket> {
        match &self.0 {
            Content::Short { time, deficit, .. } | Content::Long { time, deficit, .. } => {
                Some(PackedBucket::load(*time, *deficit))
            }
            Content::Empty | Content::Unpacked(_) => None,
        }
    }

    pub(super) fn is_fresh(&self, now: Timestamp, entries: &Entries) -> bool {
        match (&self.0, self.packed()) {
            (Content::Unpacked(unpacked), _) => unpacked.state.is_fresh(now),
            (_, Some(packed)) => State::Bucket(packed.unpack(entries)).is_fresh(now),
            (_, None) => true,
        }
    }

    /// Returns the identity and limit of the last operation.
    pub(super) fn registered(&self, entries: &Entries) -> Option<Registered> {
        match &self.0 {
            Content::Unpacked(unpacked) => {
                Some(Registered { identity: unpacked.identity, limit: unpacked.limit })
            }
            _ => self.packed().map(|packed| {
                let limit = packed.limit();
                Registered { identity: entries.identity_of(limit), limit }
            }),
        }
    }

    pub(super) fn identity(&self, entries: &Entries) -> Option<u32> {
        self.registered(entries).map(|registered| registered.identity)
    }

    pub(super) fn subject(&self) -> &[u8] {
        match &self.0 {
            Content::Empty => &[],
            Content::Short { subject, .. } => subject.text(),
            Content::Long { subject, .. } => subject,
            Content::Unpacked(unpacked) => &unpacked.subject,
        }
    }

    /// Returns the limit identity as text, and the subject.
    pub(super) fn key<'s>(&'s self, entries: &'s Entries) -> Option<(&'s str, &'s str)> {
        let subject = std::str::from_utf8(self.subject()).ok()?;
        match self.identity(entries)? {
            UNREGISTERED => subject.split_once('\0'),
            identity => Some((entries.text(identity)?, subject)),
        }
    }

    /// Encodes the state.
    pub(super) fn save(&self, entries: &Entries, out: &mut Vec<u8>) {
        match (&self.0, self.packed()) {
            (Content::Unpacked(unpacked), _) => unpacked.state.save(out),
            (_, Some(packed)) => State::Bucket(packed.unpack(entries)).save(out),
            (_, None) => State::Fresh.save(out),
        }
    }

    pub(super) fn hash(&self, entries: &Entries, hasher: &impl BuildHasher) -> u64 {
        hash(self.identity(entries).unwrap_or_default(), self.subject(), hasher)
    }
}

/// Packs a bucket into a slot. Returns `None` if its limit is not registered or has other parameters.
fn pack(lookup: &LookupKey<'_>, bucket: &Bucket, limit: &Limit) -> Option<Content> {
    let id = Some(lookup.registered.limit).filter(|id| id.is_bucket())?;
    let parameters = limit.parameters().as_token_bucket();
    parameters.filter(|parameters| bucket.is_of(parameters))?;
    let (time, deficit) = PackedBucket::new(id, bucket).store();
    Some(match lookup.short {
        Some(subject) => Content::Short { time, deficit, subject: subject.padded() },
        None => Content::Long { time, deficit, subject: lookup.subject.into() },
    })
}

impl Unpacked {
    fn new(lookup: &LookupKey<'_>, state: State) -> Self {
        let Registered { identity, limit } = lookup.registered;
        Self { identity, limit, subject: lookup.subject.into(), state }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_is_half_a_cache_line() {
        assert_eq!((size_of::<Slot>(), align_of::<Slot>()), (32, 32));
    }
}

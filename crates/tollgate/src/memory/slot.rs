//! Table slots: a key and its state. A token bucket is packed beside its subject, other states are boxed.

use std::hash::BuildHasher;

use super::hash::hash;
use super::inline_subject::{InlineSubject, LongText, SHORT, ShortSubject, ShortText};
use super::packed::{PackedBucket, PackedBucketMut, PackedTime};
use super::registry::{LimitId, Registered, Registry};
use super::stored_key::{StoredKey, StoredState};
use crate::algorithm::{Bucket, Op, Reply, State};
use crate::limit::Limit;
use crate::time::Timestamp;

/// Key of a lookup.
#[derive(Debug, Clone, Copy)]
pub(super) struct LookupKey<'a> {
    registered: Registered,
    subject: &'a [u8],
    short: Option<ShortSubject>,
}

/// Slot of half a cache line, for subjects of up to 16 bytes.
pub(super) type ShortSlot = Slot<ShortText>;

/// Slot of a cache line, for longer subjects.
pub(super) type LongSlot = Slot<LongText>;

/// One key and its state.
#[derive(Debug)]
pub(super) struct Slot<S: InlineSubject> {
    content: Content<S>,
    _alignment: [S::Alignment; 0],
}

#[derive(Debug)]
enum Content<S> {
    /// A token bucket, as a [`PackedBucket`] in two parts, and its subject.
    Inline {
        time: PackedTime,
        deficit: u64,
        subject: S,
    },
    /// The same, with a subject that is too long for the slot.
    Boxed {
        time: PackedTime,
        deficit: u64,
        subject: Box<[u8]>,
    },
    Unpacked(Box<Unpacked>),
}

/// A state that cannot be packed, and its key.
#[derive(Debug)]
pub(super) struct Unpacked {
    pub(super) identity: u32,
    /// Limit of the last operation.
    pub(super) limit: LimitId,
    pub(super) subject: Box<[u8]>,
    pub(super) state: State,
}

impl<'a> LookupKey<'a> {
    #[inline]
    pub(super) fn new(registered: Registered, subject: &'a [u8]) -> Self {
        // Only comparisons with packed buckets use it.
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

    /// Returns true if the key belongs in a short slot, whatever its state.
    #[inline]
    pub(super) fn is_short(&self) -> bool {
        self.subject.len() <= SHORT
    }

    /// Returns the lookup of the same subject with another limit, which is a packed bucket if this one is.
    #[inline]
    pub(super) const fn with_limit(self, registered: Registered) -> Self {
        Self { registered, ..self }
    }

    #[inline]
    pub(super) fn hash(&self, hasher: &impl BuildHasher) -> u64 {
        hash(self.registered.identity, self.subject, hasher)
    }
}

impl ShortSlot {
    /// Returns true if the slot is a packed bucket of this limit and subject.
    #[inline(always)]
    pub(super) fn is_bucket_of_short(&self, limit: LimitId, short: ShortSubject) -> bool {
        matches!(&self.content, Content::Inline { time, deficit, subject }
            if subject.as_short() == short && PackedBucket::load(*time, *deficit).limit() == limit)
    }
}

impl<S: InlineSubject> Slot<S> {
    /// Creates a slot for a new key. `limit` is that of the last operation; `None` if a snapshot does not contain it.
    pub(super) fn new(lookup: &LookupKey<'_>, state: State, limit: Option<&Limit>) -> Self {
        let packed = match (&state, limit) {
            (State::Bucket(bucket), Some(limit)) => pack(lookup, bucket, limit),
            _ => None,
        };
        let unpacked = || Content::Unpacked(Box::new(Unpacked::new(lookup, state)));
        Self { content: packed.unwrap_or_else(unpacked), _alignment: [] }
    }

    /// Returns true if the slot is a packed bucket of this limit and subject.
    #[inline(always)]
    pub(super) fn is_bucket_of(&self, limit: LimitId, text: &[u8]) -> bool {
        match &self.content {
            Content::Inline { time, deficit, subject } => {
                PackedBucket::load(*time, *deficit).limit() == limit && subject.equals(text)
            }
            Content::Boxed { time, deficit, subject } => {
                PackedBucket::load(*time, *deficit).limit() == limit && **subject == *text
            }
            Content::Unpacked(_) => false,
        }
    }

    /// Returns the packed bucket, if the slot has one.
    #[inline(always)]
    pub(super) fn bucket_mut(&mut self) -> Option<PackedBucketMut<'_>> {
        match &mut self.content {
            Content::Inline { time, deficit, .. } | Content::Boxed { time, deficit, .. } => {
                Some(PackedBucketMut { time, deficit })
            }
            Content::Unpacked(_) => None,
        }
    }

    /// Returns a copy of the packed bucket, if the slot has one.
    #[inline(always)]
    pub(super) fn bucket(&self) -> Option<PackedBucket> {
        match &self.content {
            Content::Inline { time, deficit, .. } | Content::Boxed { time, deficit, .. } => {
                Some(PackedBucket::load(*time, *deficit))
            }
            Content::Unpacked(_) => None,
        }
    }

    pub(super) fn matches(&self, lookup: &LookupKey<'_>, registry: &Registry) -> bool {
        if let Content::Unpacked(unpacked) = &self.content {
            return unpacked.identity == lookup.registered.identity
                && *unpacked.subject == *lookup.subject;
        }
        self.is_bucket_of(lookup.limit(), lookup.subject) || self.matches_slow(lookup, registry)
    }

    /// Compares subject and identity. The limit's id differs if its parameters have changed.
    #[cold]
    fn matches_slow(&self, lookup: &LookupKey<'_>, registry: &Registry) -> bool {
        let key = self.key();
        key.subject() == lookup.subject
            && key.registered(&registry.read()).identity == lookup.registered.identity
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
        let mut state = match &mut self.content {
            Content::Inline { time, deficit, .. } | Content::Boxed { time, deficit, .. } => {
                let packed = PackedBucket::load(*time, *deficit);
                State::Bucket(packed.unpack(&registry.read()))
            }
            Content::Unpacked(unpacked) => std::mem::take(&mut unpacked.state),
        };
        let result = action(&mut state);
        let packed = match &state {
            State::Bucket(bucket) => pack(lookup, bucket, limit),
            _ => None,
        };
        match (packed, &mut self.content) {
            (Some(packed), content) => *content = packed,
            (None, Content::Unpacked(unpacked)) => {
                (unpacked.limit, unpacked.state) = (lookup.registered.limit, state);
            }
            (None, content) => {
                *content = Content::Unpacked(Box::new(Unpacked::new(lookup, state)));
            }
        }
        result
    }

    /// Returns the state, or `None` if it is a packed token bucket.
    pub(super) fn state_mut(&mut self) -> Option<&mut State> {
        match &mut self.content {
            Content::Unpacked(unpacked) => Some(&mut unpacked.state),
            Content::Inline { .. } | Content::Boxed { .. } => None,
        }
    }

    pub(super) fn key(&self) -> StoredKey<'_> {
        let packed = |time, deficit| StoredState::Packed(PackedBucket::load(time, deficit));
        match &self.content {
            Content::Inline { time, deficit, subject } => {
                StoredKey::new(subject.text(), packed(*time, *deficit))
            }
            Content::Boxed { time, deficit, subject } => {
                StoredKey::new(subject, packed(*time, *deficit))
            }
            Content::Unpacked(unpacked) => {
                StoredKey::new(&unpacked.subject, StoredState::Unpacked(unpacked))
            }
        }
    }
}

/// Packs a bucket into a slot. Returns `None` if its limit is not registered or has other parameters.
fn pack<S: InlineSubject>(
    lookup: &LookupKey<'_>,
    bucket: &Bucket,
    limit: &Limit,
) -> Option<Content<S>> {
    let id = Some(lookup.registered.limit).filter(|id| id.is_bucket())?;
    let parameters = limit.parameters().as_token_bucket();
    parameters.filter(|parameters| bucket.is_of(parameters))?;
    let (time, deficit) = PackedBucket::new(id, bucket).store();
    Some(match S::new(lookup.subject) {
        Some(subject) => Content::Inline { time, deficit, subject },
        None => Content::Boxed { time, deficit, subject: lookup.subject.into() },
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
    fn slots_are_half_a_cache_line_and_a_cache_line() {
        assert_eq!((size_of::<ShortSlot>(), align_of::<ShortSlot>()), (32, 32));
        assert_eq!((size_of::<LongSlot>(), align_of::<LongSlot>()), (64, 64));
    }
}

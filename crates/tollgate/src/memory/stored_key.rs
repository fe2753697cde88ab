//! Read-only view of a stored key and its state, whatever slot it is in.

use std::hash::BuildHasher;

use super::hash::hash;
use super::packed::PackedBucket;
use super::registry::{Entries, Registered, UNREGISTERED};
use super::slot::Unpacked;
use crate::algorithm::State;
use crate::time::Timestamp;

/// A stored key and its state.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredKey<'s> {
    subject: &'s [u8],
    state: StoredState<'s>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum StoredState<'s> {
    Packed(PackedBucket),
    Unpacked(&'s Unpacked),
}

impl<'s> StoredKey<'s> {
    pub(super) const fn new(subject: &'s [u8], state: StoredState<'s>) -> Self {
        Self { subject, state }
    }

    pub(super) fn is_fresh(&self, now: Timestamp, entries: &Entries) -> bool {
        match &self.state {
            StoredState::Unpacked(unpacked) => unpacked.state.is_fresh(now),
            StoredState::Packed(packed) => State::Bucket(packed.unpack(entries)).is_fresh(now),
        }
    }

    /// Returns the identity and limit of the last operation.
    pub(super) fn registered(&self, entries: &Entries) -> Registered {
        match &self.state {
            StoredState::Unpacked(unpacked) => {
                Registered { identity: unpacked.identity, limit: unpacked.limit }
            }
            StoredState::Packed(packed) => {
                let limit = packed.limit();
                Registered { identity: entries.identity_of(limit), limit }
            }
        }
    }

    /// The subject, or the full name if the limit is not registered.
    pub(super) fn subject(&self) -> &'s [u8] {
        self.subject
    }

    /// Returns the limit identity as text, and the subject.
    pub(super) fn key<'k>(&self, entries: &'k Entries) -> Option<(&'k str, &'k str)>
    where
        's: 'k,
    {
        let subject = std::str::from_utf8(self.subject).ok()?;
        match self.registered(entries).identity {
            UNREGISTERED => subject.split_once('\0'),
            identity => Some((entries.text(identity)?, subject)),
        }
    }

    /// Encodes the state.
    pub(super) fn save(&self, entries: &Entries, out: &mut Vec<u8>) {
        match &self.state {
            StoredState::Unpacked(unpacked) => unpacked.state.save(out),
            StoredState::Packed(packed) => State::Bucket(packed.unpack(entries)).save(out),
        }
    }

    pub(super) fn hash(&self, entries: &Entries, hasher: &impl BuildHasher) -> u64 {
        hash(self.registered(entries).identity, self.subject, hasher)
    }
}

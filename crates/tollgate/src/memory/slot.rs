//! A slot: one key and its state in one cache line.

use std::hash::{BuildHasher, Hasher};

use crate::algorithm::State;

/// Subjects up to this long live in the slot itself, longer ones behind a pointer.
const INLINE: usize = 18;

/// What a key is looked up by: its scope's number and its subject's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name<'a> {
    pub(super) scope: u32,
    pub(super) subject: &'a [u8],
}

/// Odd, and with bits all over: one subject's keys under different scopes land far apart.
const SCOPE_STRIDE: u64 = 0x9E37_79B9_7F4A_7C15;

impl Name<'_> {
    #[inline]
    pub(super) fn hash(&self, hasher: &impl BuildHasher) -> u64 {
        let mut hasher = hasher.build_hasher();
        hasher.write(self.subject);
        hasher.finish().wrapping_add(u64::from(self.scope).wrapping_mul(SCOPE_STRIDE))
    }

    #[inline]
    fn is(&self, other: Name<'_>) -> bool {
        self.scope == other.scope && same(self.subject, other.subject)
    }
}

/// Compares short texts in a few overlapping words: a call would cost more than the comparison.
#[inline]
fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match a.len() {
        8..=16 => {
            a.first_chunk::<8>() == b.first_chunk::<8>()
                && a.last_chunk::<8>() == b.last_chunk::<8>()
        }
        4..=7 => {
            a.first_chunk::<4>() == b.first_chunk::<4>()
                && a.last_chunk::<4>() == b.last_chunk::<4>()
        }
        _ => a == b,
    }
}

/// A key with its state. 64 bytes, on a line of its own: finding a key costs one cache miss.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Slot {
    name: OwnedName,
    pub(super) state: State,
}

#[derive(Debug)]
enum OwnedName {
    Inline { scope: u32, length: u8, bytes: [u8; INLINE] },
    Heap { scope: u32, bytes: Box<[u8]> },
}

impl Default for OwnedName {
    fn default() -> Self {
        Self::Inline { scope: 0, length: 0, bytes: [0; INLINE] }
    }
}

impl Slot {
    pub(super) fn new(name: Name<'_>, state: State) -> Self {
        let Name { scope, subject } = name;
        let mut bytes = [0; INLINE];
        let name = match (bytes.get_mut(..subject.len()), u8::try_from(subject.len())) {
            (Some(inline), Ok(length)) => {
                inline.copy_from_slice(subject);
                OwnedName::Inline { scope, length, bytes }
            }
            _ => OwnedName::Heap { scope, bytes: subject.into() },
        };
        Self { name, state }
    }

    #[inline]
    pub(super) fn is_named(&self, name: Name<'_>) -> bool {
        self.name().is(name)
    }

    #[inline]
    pub(super) fn name(&self) -> Name<'_> {
        match &self.name {
            OwnedName::Inline { scope, length, bytes } => Name {
                scope: *scope,
                subject: bytes.get(..usize::from(*length)).unwrap_or_default(),
            },
            OwnedName::Heap { scope, bytes } => Name { scope: *scope, subject: bytes },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_one_cache_line() {
        assert_eq!(size_of::<Slot>(), 64);
        assert_eq!(align_of::<Slot>(), 64);
    }

    #[test]
    fn names_of_any_length_come_back() {
        for length in 0..100 {
            let subject = vec![7u8; length];
            let name = Name { scope: 3, subject: &subject };
            assert_eq!(Slot::new(name, State::Fresh).name(), name);
        }
    }
}

//! Cluster slots: how a cluster distributes keys over its nodes.

use std::sync::OnceLock;

/// The number of slots.
pub(crate) const SLOTS: u16 = 16_384;

/// A cluster slot. A single server has one slot for all keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Slot(u16);

impl Slot {
    /// The slot of all keys without a cluster.
    pub(crate) const ONLY: Self = Self(0);

    /// Returns the slot of a key: the hash of the text between its first braces, or of the whole key if that text
    /// is empty.
    pub(crate) fn of(key: &[u8]) -> Self {
        let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
            let rest = key.get(open + 1..)?;
            let close = rest.iter().position(|byte| *byte == b'}')?;
            rest.get(..close).filter(|tag| !tag.is_empty())
        });
        Self(checksum(tag.unwrap_or(key)) % SLOTS)
    }

    /// Returns the slot with this number, if it exists.
    pub(crate) fn numbered(number: u16) -> Option<Self> {
        (number < SLOTS).then_some(Self(number))
    }

    pub(crate) fn number(self) -> usize {
        usize::from(self.0)
    }
}

/// Returns a number whose decimal text, as a hash tag, is in a slot.
pub(crate) fn tag_in(slot: Slot) -> u32 {
    static TAGS: OnceLock<Vec<u32>> = OnceLock::new();
    let tags = TAGS.get_or_init(|| {
        let mut tags = vec![None; usize::from(SLOTS)];
        let mut missing = tags.len();
        for number in 0u32.. {
            let Slot(slot) = Slot::of(format!("{{{number}}}").as_bytes());
            if let Some(tag @ None) = tags.get_mut(usize::from(slot)) {
                *tag = Some(number);
                missing -= 1;
            }
            if missing == 0 {
                break;
            }
        }
        tags.into_iter().map(Option::unwrap_or_default).collect()
    });
    tags.get(slot.number()).copied().unwrap_or_default()
}

/// CRC-16 of Redis Cluster: polynomial 0x1021, initial value 0.
fn checksum(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_match_those_of_redis() {
        assert_eq!(checksum(b"123456789"), 0x31C3);
        for (key, slot) in [("foo", 12_182), ("bar", 5061), ("", 0), ("user1000", 3443)] {
            assert_eq!(Slot::of(key.as_bytes()), Slot(slot), "{key}");
        }
    }

    #[test]
    fn each_slot_has_a_tag() {
        for number in 0..SLOTS {
            let tag = format!("rl:{{{}}}:x", tag_in(Slot(number)));
            assert_eq!(Slot::of(tag.as_bytes()), Slot(number));
        }
    }

    #[test]
    fn hash_tag_determines_the_slot() {
        for (one, other) in [("rl:{:a}:x", ":a"), ("{:a}", ":a"), ("x{a}{b}", "a"), ("{a", "{a")] {
            assert_eq!(Slot::of(one.as_bytes()), Slot::of(other.as_bytes()), "{one}");
        }
        assert_eq!(Slot::of(b"x{}y"), Slot(checksum(b"x{}y") % SLOTS));
    }
}

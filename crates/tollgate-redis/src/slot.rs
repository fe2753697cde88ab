//! Slots: how a cluster divides its keys among its nodes.

/// How many there are.
pub(crate) const SLOTS: u16 = 16_384;

/// A share of a cluster's keys. A server that is no cluster has one for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Slot(u16);

impl Slot {
    /// Where everything is that is not in a cluster.
    pub(crate) const ONLY: Self = Self(0);

    /// The slot of a key: of what stands between its first braces, if that is anything.
    pub(crate) fn of(key: &[u8]) -> Self {
        let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
            let rest = key.get(open + 1..)?;
            let close = rest.iter().position(|byte| *byte == b'}')?;
            rest.get(..close).filter(|tag| !tag.is_empty())
        });
        Self(checksum(tag.unwrap_or(key)) % SLOTS)
    }

    /// The slot of this number, if there is one.
    pub(crate) fn numbered(number: u16) -> Option<Self> {
        (number < SLOTS).then_some(Self(number))
    }

    pub(crate) fn number(self) -> usize {
        usize::from(self.0)
    }
}

/// CRC-16 as clusters compute it: polynomial 0x1021, beginning with zero.
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
    fn slots_are_those_that_redis_computes() {
        assert_eq!(checksum(b"123456789"), 0x31C3);
        for (key, slot) in [("foo", 12_182), ("bar", 5061), ("", 0), ("user1000", 3443)] {
            assert_eq!(Slot::of(key.as_bytes()), Slot(slot), "{key}");
        }
    }

    #[test]
    fn what_stands_in_braces_decides() {
        for (one, other) in [("rl:{:a}:x", ":a"), ("{:a}", ":a"), ("x{a}{b}", "a"), ("{a", "{a")] {
            assert_eq!(Slot::of(one.as_bytes()), Slot::of(other.as_bytes()), "{one}");
        }
        assert_eq!(Slot::of(b"x{}y"), Slot(checksum(b"x{}y") % SLOTS));
    }
}

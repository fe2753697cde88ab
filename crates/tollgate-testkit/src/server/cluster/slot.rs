//! The cluster slot of a key.

/// The number of slots.
pub(super) const SLOTS: u16 = 16_384;

/// Returns the slot of a key: the hash of the text between its first `{` and the next `}`, or of the whole key.
pub fn slot_of(key: impl AsRef<[u8]>) -> u16 {
    crc16(hash_tag(key.as_ref())) % SLOTS
}

/// Returns the part of a key that is hashed.
fn hash_tag(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|&byte| byte == b'{') else { return key };
    let rest = &key[open + 1..];
    match rest.iter().position(|&byte| byte == b'}') {
        Some(close) if close > 0 => &rest[..close],
        // An empty hash tag is ignored.
        _ => key,
    }
}

/// Returns the CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| {
            let polynomial = if crc & 0x8000 == 0 { 0 } else { 0x1021 };
            (crc << 1) ^ polynomial
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{SLOTS, crc16, slot_of};

    #[test]
    fn computes_known_slots() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        for (key, slot) in [("", 0), ("foo", 12_182), ("bar", 5_061), ("hello", 866)] {
            assert_eq!(slot_of(key), slot, "{key}");
        }
    }

    #[test]
    fn uses_only_the_first_hash_tag() {
        for (key, part) in [
            ("{user1000}.following", "user1000"),
            ("foo{}{bar}", "foo{}{bar}"),
            ("foo{{bar}}zap", "{bar"),
            ("foo{bar}{zap}", "bar"),
            ("foo{bar", "foo{bar"),
        ] {
            assert_eq!(slot_of(key), crc16(part.as_bytes()) % SLOTS, "{key}");
        }
    }
}

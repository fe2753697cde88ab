//! Values of facts.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

/// The length up to which the text of an address is stored inline, in bytes: IPv4 addresses and /64 networks fit.
const INLINE: usize = 22;

/// The value of a fact, from text, bytes or an address.
///
/// An address becomes its canonical notation, without an allocation for IPv4 addresses and for the networks that
/// [`net::rate_limit_address`](crate::net::rate_limit_address) returns.
///
/// ```
/// use std::net::{IpAddr, Ipv4Addr};
/// use tollgate::FactValue;
///
/// assert_eq!(FactValue::from("a"), FactValue::from(b"a"));
/// assert_eq!(FactValue::from(IpAddr::from(Ipv4Addr::LOCALHOST)), FactValue::from("127.0.0.1"));
/// ```
#[derive(Clone)]
pub struct FactValue<'a>(Repr<'a>);

#[derive(Clone)]
enum Repr<'a> {
    Bytes(Cow<'a, [u8]>),
    Address(AddressText),
    /// A digest that the program computed. Bytes of a caller that look like one are [`Bytes`](Self::Bytes).
    #[cfg(feature = "policy")]
    Digest(Box<[u8]>),
}

/// The text of an address, inline.
#[derive(Clone, Copy)]
struct AddressText {
    length: u8,
    bytes: [u8; INLINE],
}

impl FactValue<'_> {
    /// Returns the bytes of the value.
    #[must_use]
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Bytes(bytes) => bytes,
            Repr::Address(text) => text.as_bytes(),
            #[cfg(feature = "policy")]
            Repr::Digest(digest) => digest,
        }
    }

    /// Creates a value from a digest, which rules do not hash again.
    #[cfg(feature = "policy")]
    pub(crate) const fn of_digest(digest: Box<[u8]>) -> Self {
        Self(Repr::Digest(digest))
    }

    /// Returns the digest if the value was created from one.
    #[cfg(feature = "policy")]
    pub(crate) fn as_digest(&self) -> Option<&[u8]> {
        match &self.0 {
            Repr::Digest(digest) => Some(digest),
            Repr::Bytes(_) | Repr::Address(_) => None,
        }
    }

    /// Returns a value of less than 16 bytes in little-endian order, and its length.
    #[cfg(feature = "policy")]
    #[inline]
    pub(crate) fn as_short(&self) -> Option<(u128, usize)> {
        match &self.0 {
            Repr::Bytes(bytes) => load_short(bytes),
            // As one integer, as it was written: a read of other bytes waits for the writes.
            Repr::Address(text) => {
                let length = usize::from(text.length);
                let bytes = u128::from_le_bytes(*text.bytes.first_chunk()?);
                (length < SHORT).then(|| (bytes & !(u128::MAX << (8 * length)), length))
            }
            Repr::Digest(_) => None,
        }
    }

    /// Copies a borrowed value, so that it has no lifetime.
    pub(super) fn into_owned(self) -> FactValue<'static> {
        FactValue(match self.0 {
            Repr::Bytes(bytes) => Repr::Bytes(Cow::Owned(bytes.into_owned())),
            Repr::Address(text) => Repr::Address(text),
            #[cfg(feature = "policy")]
            Repr::Digest(digest) => Repr::Digest(digest),
        })
    }
}

/// Size of a short value with the byte before it, in bytes.
#[cfg(feature = "policy")]
pub(crate) const SHORT: usize = 16;

#[cfg(feature = "policy")]
#[inline]
fn load_short(value: &[u8]) -> Option<(u128, usize)> {
    let length = value.len();
    let bytes = match length {
        8..SHORT => {
            let first = u64::from_le_bytes(*value.first_chunk()?);
            let last = u64::from_le_bytes(*value.last_chunk()?);
            u128::from(first) | u128::from(last) << (8 * (length - 8))
        }
        4..8 => {
            let first = u32::from_le_bytes(*value.first_chunk()?);
            let last = u32::from_le_bytes(*value.last_chunk()?);
            u128::from(first) | u128::from(last) << (8 * (length - 4))
        }
        0..4 => value.iter().rev().fold(0, |bytes, byte| bytes << 8 | u128::from(*byte)),
        _ => return None,
    };
    Some((bytes, length))
}

impl AddressText {
    const fn new() -> Self {
        Self { length: 0, bytes: [0; INLINE] }
    }

    fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// Formats an IPv4 address 40 times faster than `Display`; it runs for every request. The text is composed in a
    /// register, because a copy of memory that was written byte by byte waits for the writes.
    #[inline]
    fn of_ipv4(address: Ipv4Addr) -> Self {
        let [first, second, third, fourth] = address.octets();
        let ((start, start_length), (end, end_length)) = (pair(first, second), pair(third, fourth));
        let text = u128::from(start) | u128::from(end) << (8 * start_length);
        let length = start_length + end_length;
        let mut bytes = [0; INLINE];
        if let Some(start) = bytes.first_chunk_mut() {
            *start = text.to_le_bytes();
        }
        // Without the last dot, which is not part of the text.
        Self { length: length - 1, bytes }
    }
}

/// Returns the digits of two octets, each with a dot after it, and their length in bytes.
#[inline]
fn pair(first: u8, second: u8) -> (u64, u8) {
    let octet = |octet: u8| OCTETS.get(usize::from(octet)).copied().unwrap_or_default();
    let ((first, first_length), (second, second_length)) = (octet(first), octet(second));
    (u64::from(first) | u64::from(second) << (8 * first_length), first_length + second_length)
}

/// The decimal digits of each octet and a dot, in little-endian order, and their length in bytes.
#[expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "the compiler evaluates it"
)]
const OCTETS: [(u32, u8); 256] = {
    let (mut octets, mut octet) = ([(0, 0); 256], 0);
    while octet < 256 {
        let number = octet as u8;
        let [hundreds, tens, ones] = [number / 100, number / 10 % 10, number % 10];
        let (hundreds, tens, ones) = (b'0' + hundreds, b'0' + tens, b'0' + ones);
        octets[octet] = match number {
            0..=9 => (u32::from_le_bytes([ones, b'.', 0, 0]), 2),
            10..=99 => (u32::from_le_bytes([tens, ones, b'.', 0]), 3),
            _ => (u32::from_le_bytes([hundreds, tens, ones, b'.']), 4),
        };
        octet += 1;
    }
    octets
};

/// Fails if the text does not fit.
impl fmt::Write for AddressText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let start = usize::from(self.length);
        let end = start + text.len();
        let free = self.bytes.get_mut(start..end).ok_or(fmt::Error)?;
        free.copy_from_slice(text.as_bytes());
        self.length = u8::try_from(end).map_err(|_| fmt::Error)?;
        Ok(())
    }
}

impl fmt::Debug for FactValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FactValue").field(&self.as_bytes()).finish()
    }
}

impl PartialEq for FactValue<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for FactValue<'_> {}

impl From<IpAddr> for FactValue<'_> {
    #[inline]
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self(Repr::Address(AddressText::of_ipv4(address))),
            IpAddr::V6(address) => {
                let mut text = AddressText::new();
                match fmt::write(&mut text, format_args!("{address}")) {
                    Ok(()) => Self(Repr::Address(text)),
                    Err(fmt::Error) => Self::from(address.to_string()),
                }
            }
        }
    }
}

macro_rules! from {
    ($($source:ty => |$value:ident| $bytes:expr),* $(,)?) => {$(
        impl<'a> From<$source> for FactValue<'a> {
            fn from($value: $source) -> Self {
                Self(Repr::Bytes($bytes))
            }
        }
    )*};
}

from! {
    Cow<'a, [u8]> => |value| value,
    &'a [u8] => |value| Cow::Borrowed(value),
    &'a Vec<u8> => |value| Cow::Borrowed(value),
    Vec<u8> => |value| Cow::Owned(value),
    &'a str => |value| Cow::Borrowed(value.as_bytes()),
    &'a String => |value| Cow::Borrowed(value.as_bytes()),
    String => |value| Cow::Owned(value.into_bytes()),
    Cow<'a, str> => |value| match value {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    },
}

impl<'a, const N: usize> From<&'a [u8; N]> for FactValue<'a> {
    fn from(value: &'a [u8; N]) -> Self {
        Self(Repr::Bytes(Cow::Borrowed(value)))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::{FactValue, Repr};

    proptest! {
        #[test]
        fn address_has_its_canonical_notation(v4: [u8; 4], v6: [u16; 8]) {
            let network = Ipv6Addr::from_bits(Ipv6Addr::from(v6).to_bits() & !0 << 64);
            let v4 = IpAddr::V4(Ipv4Addr::from(v4));
            for address in [v4, IpAddr::V6(Ipv6Addr::from(v6)), IpAddr::V6(network)] {
                let value = FactValue::from(address);
                prop_assert_eq!(&value, &FactValue::from(address.to_string()));
                let is_short = matches!(value.0, Repr::Address(_));
                prop_assert_eq!(is_short, address.to_string().len() <= super::INLINE);
            }
        }
    }
}

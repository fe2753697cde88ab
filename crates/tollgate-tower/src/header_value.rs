//! Headers read strictly: what can be read in two ways is not read at all.

use http::HeaderMap;
use http::header::AsHeaderName;

/// The value of a header that comes once. Of one that comes twice nobody knows which is meant.
pub(crate) fn only(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&[u8]> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then_some(value.as_bytes())
}

/// A whole number of digits only, without a sign. One beyond all numbers is the largest: whoever reads it as a cost
/// or a time has a bound of its own.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    let digits = text.trim_ascii();
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    Some(digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::{HeaderMap, number, only};

    #[test]
    fn a_header_that_comes_twice_is_not_read() {
        let mut headers = HeaderMap::new();
        headers.append("x-client-id", "c1".parse().unwrap());
        assert_eq!(only(&headers, "x-client-id"), Some(&b"c1"[..]));
        headers.append("x-client-id", "c1".parse().unwrap());
        assert_eq!(only(&headers, "x-client-id"), None);
    }

    #[test]
    fn numbers_are_digits() {
        assert_eq!(number(b" 007 "), Some(7));
        assert_eq!(number(b"18446744073709551616"), Some(u64::MAX));
        for text in ["", " ", "+5", "-5", "1.5", "5s", "0x10", "1 2"] {
            assert_eq!(number(text.as_bytes()), None, "{text}");
        }
    }
}

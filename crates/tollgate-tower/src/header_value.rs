//! Strict header parsing: an ambiguous header counts as absent.

use http::HeaderMap;
use http::header::AsHeaderName;

/// Returns the value of a header that occurs exactly once. A repeated header is ambiguous and counts as absent.
pub(crate) fn single_value(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&[u8]> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then_some(value.as_bytes())
}

/// Parses decimal digits without a sign. A number above `u64::MAX` becomes `u64::MAX`, because callers cap costs and
/// times themselves.
pub(crate) fn parse_digits(text: &[u8]) -> Option<u64> {
    let digits = text.trim_ascii();
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    Some(digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::{HeaderMap, parse_digits, single_value};

    #[test]
    fn repeated_header_counts_as_absent() {
        let mut headers = HeaderMap::new();
        headers.append("x-client-id", "c1".parse().unwrap());
        assert_eq!(single_value(&headers, "x-client-id"), Some(&b"c1"[..]));
        headers.append("x-client-id", "c1".parse().unwrap());
        assert_eq!(single_value(&headers, "x-client-id"), None);
    }

    #[test]
    fn parses_only_decimal_digits() {
        assert_eq!(parse_digits(b" 007 "), Some(7));
        assert_eq!(parse_digits(b"18446744073709551616"), Some(u64::MAX));
        for text in ["", " ", "+5", "-5", "1.5", "5s", "0x10", "1 2"] {
            assert_eq!(parse_digits(text.as_bytes()), None, "{text}");
        }
    }
}

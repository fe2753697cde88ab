//! Numbers in commands and replies.

/// Maximum of a number in a command: all arithmetic is exact below 2^53.
pub(super) const MAX_NUMBER: u64 = (1 << 53) - 1;

/// Parses a decimal number with an optional sign.
pub(super) fn parse_integer(text: &[u8]) -> Option<i64> {
    // Most numbers have one or two digits.
    match text {
        [ones @ b'0'..=b'9'] => return Some(i64::from(ones - b'0')),
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => {
            return Some(i64::from(tens - b'0') * 10 + i64::from(ones - b'0'));
        }
        _ => {}
    }
    let (digits, sign) = match text.split_first() {
        Some((b'-', digits)) => (digits, -1),
        Some((b'+', digits)) => (digits, 1),
        _ => (text, 1),
    };
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_i64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| i64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit.checked_mul(sign)?)
    })
}

/// Converts a number to that of a reply, saturating.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_every_integer_and_nothing_else() {
        for (text, expected) in [
            ("0", 0),
            ("-0", 0),
            ("+7", 7),
            ("007", 7),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(parse_integer(text.as_bytes()), Some(expected), "{text}");
        }
        let invalid = [
            "",
            "-",
            "+",
            "--1",
            "1.0",
            "1e3",
            " 1",
            "1 ",
            "9223372036854775808",
            "0x1",
            "\u{661}",
        ];
        for text in invalid {
            assert_eq!(parse_integer(text.as_bytes()), None, "{text}");
        }
    }
}

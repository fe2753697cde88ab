//! Inline commands: one line of text, split into arguments with the quoting rules of Redis.

use std::ops::Range;

/// A quote that is not closed, or whose end is not followed by a space.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnbalancedQuotes;

/// Splits a line into arguments. Their bytes are appended to `unquoted`, and `ranges` receives their positions there.
///
/// Double quotes allow the escapes `\n \r \t \b \a \xHH \" \\`, single quotes only `\'`.
pub(super) fn split(
    line: &[u8],
    unquoted: &mut Vec<u8>,
    ranges: &mut Vec<Range<usize>>,
) -> Result<(), UnbalancedQuotes> {
    let mut rest = line;
    loop {
        rest = skip_spaces(rest);
        if rest.is_empty() {
            return Ok(());
        }
        let start = unquoted.len();
        rest = read_argument(rest, unquoted)?;
        ranges.push(start..unquoted.len());
    }
}

/// Appends the first argument and returns what follows it.
fn read_argument<'a>(
    mut rest: &'a [u8],
    unquoted: &mut Vec<u8>,
) -> Result<&'a [u8], UnbalancedQuotes> {
    while let Some((&byte, after)) = rest.split_first() {
        match byte {
            b'"' => return closed(read_double_quoted(after, unquoted)?),
            b'\'' => return closed(read_single_quoted(after, unquoted)?),
            byte if is_space(byte) => return Ok(rest),
            byte => {
                unquoted.push(byte);
                rest = after;
            }
        }
    }
    Ok(rest)
}

/// Returns what follows a closing quote, which must be a space or the end of the line.
fn closed(rest: &[u8]) -> Result<&[u8], UnbalancedQuotes> {
    match rest.first() {
        Some(byte) if !is_space(*byte) => Err(UnbalancedQuotes),
        _ => Ok(rest),
    }
}

fn read_double_quoted<'a>(
    mut rest: &'a [u8],
    unquoted: &mut Vec<u8>,
) -> Result<&'a [u8], UnbalancedQuotes> {
    loop {
        rest = match rest {
            [b'"', after @ ..] => return Ok(after),
            [b'\\', b'x', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                unquoted.push(hex_digit(*high) << 4 | hex_digit(*low));
                after
            }
            [b'\\', escaped, after @ ..] => {
                unquoted.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                after
            }
            [byte, after @ ..] => {
                unquoted.push(*byte);
                after
            }
            [] => return Err(UnbalancedQuotes),
        };
    }
}

fn read_single_quoted<'a>(
    mut rest: &'a [u8],
    unquoted: &mut Vec<u8>,
) -> Result<&'a [u8], UnbalancedQuotes> {
    loop {
        rest = match rest {
            [b'\\', b'\'', after @ ..] => {
                unquoted.push(b'\'');
                after
            }
            [b'\'', after @ ..] => return Ok(after),
            [byte, after @ ..] => {
                unquoted.push(*byte);
                after
            }
            [] => return Err(UnbalancedQuotes),
        };
    }
}

/// Returns the value of a hexadecimal digit.
fn hex_digit(digit: u8) -> u8 {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok()).unwrap_or_default()
}

/// Returns whether a byte separates arguments; as `isspace` of C, which includes the vertical tab.
const fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

/// Skips the separators at the start of a line.
fn skip_spaces(line: &[u8]) -> &[u8] {
    let start = line.iter().position(|byte| !is_space(*byte)).unwrap_or(line.len());
    line.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Result<Vec<Vec<u8>>, UnbalancedQuotes> {
        let (mut unquoted, mut ranges) = (Vec::new(), Vec::new());
        split(line.as_bytes(), &mut unquoted, &mut ranges)?;
        Ok(ranges.into_iter().map(|range| unquoted[range].to_vec()).collect())
    }

    #[test]
    fn splits_as_redis_does() {
        for (line, expected) in [
            ("", &[][..]),
            (" \t\x0b\r", &[]),
            ("PING\r", &[&b"PING"[..]]),
            ("  set  a b ", &[b"set", b"a", b"b"]),
            (r#"a "b c" 'd e'"#, &[b"a", b"b c", b"d e"]),
            (r#""\x00\xfF\n\r\t\b\a\"\\\q""#, &[b"\x00\xff\n\r\t\x08\x07\"\\q"]),
            (r#""\xg0""#, &[b"xg0"]),
            (r"'a\'b\n'", &[br"a'b\n"]),
            (r#"a"b""#, &[b"ab"]),
            (r#""" ''"#, &[b"", b""]),
        ] {
            assert_eq!(arguments(line).unwrap(), expected, "{line:?}");
        }
    }

    #[test]
    fn refuses_unbalanced_quotes() {
        for line in [r#"""#, "'", r#""a"b"#, "'a'b", r#"a ""#, r#""\"#, r"'\'", r#""a"'b'"#] {
            assert_eq!(arguments(line), Err(UnbalancedQuotes), "{line:?}");
        }
    }
}

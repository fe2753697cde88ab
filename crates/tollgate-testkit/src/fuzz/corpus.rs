//! Corpus files: one input per line, with the escapes `\n \r \t \\ \' \" \xHH`.

use std::fs;
use std::path::Path;

/// Reads the inputs of `testdata/fuzz/NAME.txt`. Empty lines and lines that start with `# ` are skipped.
pub(super) fn read(name: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fuzz");
    let path = root.join(name).with_extension("txt");
    let text = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    let is_input = |line: &&str| !line.is_empty() && !line.starts_with("# ");
    text.lines()
        .filter(is_input)
        .map(|line| {
            unescape(line).unwrap_or_else(|| panic!("invalid escape in {name}.txt: {line}"))
        })
        .collect()
}

/// Writes an input as a line.
pub(super) fn escape(input: &[u8]) -> String {
    input.escape_ascii().to_string()
}

fn unescape(line: &str) -> Option<Vec<u8>> {
    let mut bytes = line.bytes();
    let mut input = Vec::with_capacity(line.len());
    while let Some(byte) = bytes.next() {
        input.push(match byte {
            b'\\' => match bytes.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'x' => {
                    let digit = |byte: u8| char::from(byte).to_digit(16);
                    let (high, low) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
                    u8::try_from(high * 16 + low).ok()?
                }
                byte @ (b'\\' | b'\'' | b'"') => byte,
                _ => return None,
            },
            byte => byte,
        });
    }
    Some(input)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_input_is_one_line() {
        let input: Vec<u8> = (0..=255).collect();
        let line = escape(&input);
        assert!(line.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '));
        assert_eq!(unescape(&line), Some(input));
        assert_eq!(unescape("é\"'").as_deref(), Some("é\"'".as_bytes()));
        assert_eq!(unescape("\\q"), None);
        assert_eq!(unescape("\\x1"), None);
    }
}

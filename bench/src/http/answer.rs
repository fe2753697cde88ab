//! As much of HTTP/1.1 answers as it takes to know where one ends and whether it is the right one.

use crate::Outcome;

/// How every body begins whose request passed: ours, the peer's and the constant.
pub const ALLOWED: &str = r#"{"allowed":true"#;

/// A whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer<'b> {
    /// The status line's number.
    pub status: u16,
    /// What follows the head.
    pub body: &'b [u8],
}

impl<'b> Answer<'b> {
    /// The answer in `bytes`, which hold one at most; nothing as long as it is not whole.
    ///
    /// # Errors
    /// Bytes that are no HTTP/1.1 answer of a known length, or more than one.
    pub fn parse(bytes: &'b [u8]) -> Outcome<Option<Self>> {
        let Some(head) = Head::parse(bytes)? else { return Ok(None) };
        let body = bytes.get(head.bytes..).unwrap_or_default();
        if body.len() > head.body_bytes {
            return Err("more was answered than asked".into());
        }
        let whole = body.len() == head.body_bytes;
        Ok(whole.then_some(Self { status: head.status, body }))
    }

    /// Whether it lets the request pass.
    ///
    /// # Errors
    /// The answer, where it does not.
    pub fn must_allow(&self) -> Outcome<()> {
        if self.status == 200 && self.body.starts_with(ALLOWED.as_bytes()) {
            return Ok(());
        }
        let body = String::from_utf8_lossy(self.body);
        Err(format!("answered {} with: {body}", self.status).into())
    }
}

struct Head {
    status: u16,
    /// The empty line included.
    bytes: usize,
    body_bytes: usize,
}

impl Head {
    fn parse(bytes: &[u8]) -> Outcome<Option<Self>> {
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let Some(first) = lines.next().filter(|line| line.ends_with(b"\n")) else {
            return Ok(None);
        };
        let mut length = first.len();
        let mut body_bytes = None;
        for line in lines {
            length += line.len();
            match line {
                b"\r\n" => {
                    let body_bytes = body_bytes.ok_or("an answer without Content-Length")?;
                    return Ok(Some(Self { status: status(first)?, bytes: length, body_bytes }));
                }
                _ if line.ends_with(b"\n") => body_bytes = body_bytes.or(content_length(line)?),
                _ => break,
            }
        }
        Ok(None)
    }
}

fn status(line: &[u8]) -> Outcome<u16> {
    let digits = line.strip_prefix(b"HTTP/1.1 ").and_then(|rest| rest.get(..3));
    let complaint = || format!("no status line: {}", String::from_utf8_lossy(line).trim_end());
    let digits = digits.and_then(|digits| str::from_utf8(digits).ok()).ok_or_else(complaint)?;
    digits.parse().map_err(|_| complaint().into())
}

fn content_length(line: &[u8]) -> Outcome<Option<usize>> {
    const NAME: &[u8] = b"content-length:";
    let Some((name, value)) = line.split_at_checked(NAME.len()) else { return Ok(None) };
    if !name.eq_ignore_ascii_case(NAME) {
        return Ok(None);
    }
    Ok(Some(str::from_utf8(value)?.trim().parse()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
                           Content-LENGTH:  16\r\ndate: today\r\n\r\n{\"allowed\":true}";

    #[test]
    fn an_answer_is_whole_only_with_its_last_byte() {
        for end in 0..WHOLE.len() {
            assert_eq!(Answer::parse(&WHOLE[..end]).unwrap(), None, "after {end} bytes");
        }
        let answer = Answer::parse(WHOLE).unwrap().unwrap();
        assert_eq!(answer, Answer { status: 200, body: b"{\"allowed\":true}" });
        assert!(answer.must_allow().is_ok());
    }

    #[test]
    fn an_empty_body_ends_with_the_head() {
        let answer = Answer::parse(b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(answer.unwrap(), Some(Answer { status: 204, body: b"" }));
    }

    #[test]
    fn what_is_no_answer_is_told() {
        for (bytes, complaint) in [
            (&b"ERR what\r\ncontent-length: 0\r\n\r\n"[..], "no status line: ERR what"),
            (b"HTTP/1.1 2\r\ncontent-length: 0\r\n\r\n", "no status line: HTTP/1.1 2"),
            (b"HTTP/1.1 200 OK\r\n\r\n", "without Content-Length"),
            (b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n", "invalid digit"),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nab", "more was answered"),
        ] {
            let error = Answer::parse(bytes).unwrap_err().to_string();
            assert!(error.contains(complaint), "{error}");
        }
    }

    #[test]
    fn a_refusal_and_a_failure_are_shown_with_their_bodies() {
        for (status, body) in [(200, r#"{"allowed":false}"#), (500, ALLOWED)] {
            let error = Answer { status, body: body.as_bytes() }.must_allow().unwrap_err();
            assert_eq!(error.to_string(), format!("answered {status} with: {body}"));
        }
    }
}

//! A minimal HTTP/1.1 response parser: finds the end of a response, its status and its body.

use crate::Outcome;

/// Start of the body of every allowed response: tollgate's, throttlecrab's and the constant one.
pub const ALLOWED: &str = r#"{"allowed":true"#;

/// A complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response<'b> {
    /// The status code.
    pub status: u16,
    /// The body.
    pub body: &'b [u8],
}

impl<'b> Response<'b> {
    /// Parses the response in `bytes`, which contain at most one. Returns `None` if it is
    /// incomplete.
    ///
    /// # Errors
    /// The bytes are not an HTTP/1.1 response with `Content-Length`, or continue after it.
    pub fn parse(bytes: &'b [u8]) -> Outcome<Option<Self>> {
        let Some(head) = Head::parse(bytes)? else { return Ok(None) };
        let body = bytes.get(head.bytes..).unwrap_or_default();
        if body.len() > head.body_bytes {
            return Err("unexpected bytes after the response".into());
        }
        let complete = body.len() == head.body_bytes;
        Ok(complete.then_some(Self { status: head.status, body }))
    }

    /// Checks that the response allows the request.
    ///
    /// # Errors
    /// The response does not. The error contains its status and body.
    pub fn ensure_allowed(&self) -> Outcome<()> {
        if self.status == 200 && self.body.starts_with(ALLOWED.as_bytes()) {
            return Ok(());
        }
        let body = String::from_utf8_lossy(self.body);
        Err(format!("unexpected response {}: {body}", self.status).into())
    }
}

struct Head {
    status: u16,
    /// Length of the head in bytes, including the empty line.
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
                    let body_bytes = body_bytes.ok_or("response without Content-Length")?;
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
    let message = || format!("invalid status line: {}", String::from_utf8_lossy(line).trim_end());
    let digits = digits.and_then(|digits| str::from_utf8(digits).ok()).ok_or_else(message)?;
    digits.parse().map_err(|_| message().into())
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
    fn response_is_complete_only_with_its_last_byte() {
        for end in 0..WHOLE.len() {
            assert_eq!(Response::parse(&WHOLE[..end]).unwrap(), None, "after {end} bytes");
        }
        let response = Response::parse(WHOLE).unwrap().unwrap();
        assert_eq!(response, Response { status: 200, body: b"{\"allowed\":true}" });
        assert!(response.ensure_allowed().is_ok());
    }

    #[test]
    fn response_with_empty_body_ends_after_the_head() {
        let response = Response::parse(b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(response.unwrap(), Some(Response { status: 204, body: b"" }));
    }

    #[test]
    fn rejects_invalid_responses() {
        for (bytes, message) in [
            (&b"ERR what\r\ncontent-length: 0\r\n\r\n"[..], "invalid status line: ERR what"),
            (b"HTTP/1.1 2\r\ncontent-length: 0\r\n\r\n", "invalid status line: HTTP/1.1 2"),
            (b"HTTP/1.1 200 OK\r\n\r\n", "without Content-Length"),
            (b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n", "invalid digit"),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nab", "unexpected bytes"),
        ] {
            let error = Response::parse(bytes).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn error_contains_status_and_body() {
        for (status, body) in [(200, r#"{"allowed":false}"#), (500, ALLOWED)] {
            let error = Response { status, body: body.as_bytes() }.ensure_allowed().unwrap_err();
            assert_eq!(error.to_string(), format!("unexpected response {status}: {body}"));
        }
    }
}

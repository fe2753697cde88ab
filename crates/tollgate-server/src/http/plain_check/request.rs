//! Recognizes plain checks: `POST /check` with a short JSON body of known length, and nothing that changes the protocol.

use std::mem::MaybeUninit;

use httparse::{Header, Request, Status};

/// The request line of a plain check.
const REQUEST_LINE: &[u8] = b"POST /check HTTP/1.1\r\n";
/// Maximum number of headers of a plain check.
pub(super) const MAX_HEADERS: usize = 32;
/// Maximum number of digits of a length, without leading zeros.
const MAX_DIGITS: usize = 5;

/// Room for the headers of a request.
pub(super) type HeaderRoom<'b> = [MaybeUninit<Header<'b>>; MAX_HEADERS];

/// The begin of the received bytes.
#[derive(Debug)]
pub(super) enum Parsed<'h, 'b> {
    /// A complete plain check.
    Complete(PlainRequest<'h, 'b>),
    /// The begin of a head that may be that of a plain check.
    IncompleteHead,
    /// The head of a plain check, with this length of head and body together.
    IncompleteBody { length: usize },
    /// Anything else, valid or not. hyper handles it.
    Other,
}

/// A plain check.
#[derive(Debug)]
pub(super) struct PlainRequest<'h, 'b> {
    headers: &'h [Header<'b>],
    pub(super) body: &'b [u8],
    /// Length of head and body in bytes.
    pub(super) length: usize,
}

impl<'b> PlainRequest<'_, 'b> {
    /// Returns the values of all `Authorization` headers.
    pub(super) fn authorizations(&self) -> impl Iterator<Item = &'b [u8]> {
        let is_authorization = |header: &&Header<'b>| is(header.name, "authorization");
        self.headers.iter().filter(is_authorization).map(|header| header.value)
    }
}

/// Parses the request at the begin of `bytes`.
pub(super) fn parse<'h, 'b>(bytes: &'b [u8], room: &'h mut HeaderRoom<'b>) -> Parsed<'h, 'b> {
    let (begin, line) = (bytes.get(..REQUEST_LINE.len()), REQUEST_LINE);
    if begin != Some(line) {
        let is_incomplete = begin.is_none() && line.starts_with(bytes);
        return if is_incomplete { Parsed::IncompleteHead } else { Parsed::Other };
    }
    let mut request = Request::new(&mut []);
    let head = match request.parse_with_uninit_headers(bytes, room) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Parsed::IncompleteHead,
        Err(_) => return Parsed::Other,
    };
    let headers: &'h [Header<'b>] = request.headers;
    let Some(body_length) = plain_body_length(headers) else { return Parsed::Other };
    let length = head + body_length;
    match bytes.get(head..length) {
        Some(body) => Parsed::Complete(PlainRequest { headers, body, length }),
        None => Parsed::IncompleteBody { length },
    }
}

/// Returns the length of the body; `None` if the headers are not those of a plain check.
fn plain_body_length(headers: &[Header<'_>]) -> Option<usize> {
    let (mut length, mut has_type) = (None, false);
    for header in headers {
        match header.name.len() {
            6 if is(header.name, "expect") || is(header.name, "origin") => return None,
            7 if is(header.name, "upgrade") => return None,
            10 if is(header.name, "connection") => {
                header.value.eq_ignore_ascii_case(b"keep-alive").then_some(())?;
            }
            12 if is(header.name, "content-type") => {
                let is_json = header.value.eq_ignore_ascii_case(b"application/json");
                (is_json && !has_type).then_some(())?;
                has_type = true;
            }
            14 if is(header.name, "content-length") => {
                let parsed = parse_length(header.value)?;
                length.is_none().then_some(())?;
                length = Some(parsed);
            }
            14 if is(header.name, "sec-fetch-site") => return None,
            17 if is(header.name, "transfer-encoding") => return None,
            _ => {}
        }
    }
    length.filter(|_| has_type)
}

fn parse_length(value: &[u8]) -> Option<usize> {
    if value.is_empty() || value.len() > MAX_DIGITS {
        return None;
    }
    value.iter().try_fold(0, |length, byte| {
        let digit = byte.is_ascii_digit().then(|| usize::from(byte - b'0'))?;
        Some(length * 10 + digit)
    })
}

fn is(name: &str, expected: &str) -> bool {
    name.eq_ignore_ascii_case(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = r#"{"key":"a"}"#;

    fn request(headers: &str) -> String {
        format!("POST /check HTTP/1.1\r\n{headers}\r\n{BODY}")
    }

    fn kind(bytes: &[u8]) -> &'static str {
        let mut room = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        match parse(bytes, &mut room) {
            Parsed::Complete(request) => {
                assert_eq!(request.body, BODY.as_bytes());
                "complete"
            }
            Parsed::IncompleteHead => "head",
            Parsed::IncompleteBody { .. } => "body",
            Parsed::Other => "other",
        }
    }

    #[test]
    fn every_begin_of_a_plain_check_is_incomplete() {
        let text = request(
            "Host: t\r\nContent-Type: application/json\r\nConnection: Keep-Alive\r\nCONTENT-length: 11\r\n",
        );
        let head = text.len() - BODY.len();
        for end in 0..text.len() {
            let expected = if end < head { "head" } else { "body" };
            assert_eq!(kind(&text.as_bytes()[..end]), expected, "{end}");
        }
        assert_eq!(kind(text.as_bytes()), "complete");
        assert_eq!(kind([text.as_bytes(), b"\0"].concat().as_slice()), "complete");
    }

    #[test]
    fn everything_else_is_left_to_hyper() {
        let json = "content-type: application/json\r\n";
        let plain = format!("{json}content-length: 11\r\n");
        for headers in [
            json.to_owned(),
            "content-length: 11\r\n".to_owned(),
            format!("{plain}content-length: 11\r\n"),
            format!("{plain}{json}"),
            format!("{plain}transfer-encoding: chunked\r\n"),
            format!("{plain}connection: close\r\n"),
            format!("{plain}connection: keep-alive, te\r\n"),
            format!("{plain}expect: 100-continue\r\n"),
            format!("{plain}upgrade: h2c\r\n"),
            format!("{plain}bad header: 1\r\n"),
            format!("{plain}{}", "a: b\r\n".repeat(MAX_HEADERS)),
            format!("{json}content-length: +11\r\n"),
            format!("{json}content-length: 11, 11\r\n"),
            format!("{json}content-length: \r\n"),
            format!("{json}content-length: 123456\r\n"),
            "content-type: text/json\r\ncontent-length: 11\r\n".to_owned(),
        ] {
            assert_eq!(kind(request(&headers).as_bytes()), "other", "{headers}");
        }
        for begin in
            ["G", "\r\n", "POST /peek", "POST /check?a HTTP/1.1", "POST /check HTTP/1.0\r\n"]
        {
            assert_eq!(kind(begin.as_bytes()), "other", "{begin:?}");
        }
    }
}

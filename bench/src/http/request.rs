//! Requests that are written once and sent many times with other numbers in them.

use crate::keys;

/// What stands for a key's number in a body, and what for a rule's.
pub const KEY: &str = "%k";
/// See [`KEY`].
pub const RULE: &str = "%r";

/// What one request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// Which key asks.
    pub key: u32,
    /// Which rule it falls under, where there are any.
    pub rule: u32,
}

/// The bytes of a request. All numbers have eight digits, so that nothing but digits ever changes.
#[derive(Debug, Clone)]
pub struct Request {
    bytes: Vec<u8>,
    key: Option<usize>,
    rule: Option<usize>,
}

impl Request {
    /// A `POST` of a JSON body in which [`KEY`] and [`RULE`] may stand once each.
    #[must_use]
    pub fn post(path: &str, body: &str) -> Self {
        let zeros = keys::digits(0).concat();
        let filled = body.replace(KEY, &zeros).replace(RULE, &zeros);
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            filled.len(),
        );
        let offset = |wanted: &str, other: &str| {
            let (before, _) = body.split_once(wanted)?;
            Some(head.len() + before.replace(other, &zeros).len())
        };
        let (key, rule) = (offset(KEY, RULE), offset(RULE, KEY));
        Self { bytes: [head, filled].concat().into_bytes(), key, rule }
    }

    /// The same request about something else.
    #[inline]
    pub fn about(&mut self, numbers: Numbers) -> &[u8] {
        for (offset, number) in [(self.key, numbers.key), (self.rule, numbers.rule)] {
            let Some(offset) = offset else { continue };
            let places = self.bytes.iter_mut().skip(offset);
            let digits = keys::digits(number);
            for (place, digit) in places.zip(digits.iter().flat_map(|pair| pair.bytes())) {
                *place = digit;
            }
        }
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(request: &mut Request, key: u32, rule: u32) -> String {
        String::from_utf8(request.about(Numbers { key, rule }).to_vec()).unwrap()
    }

    #[test]
    fn a_request_is_whole_and_as_long_as_it_says() {
        let mut request = Request::post("/check", r#"{"key":"user:%k"}"#);
        let text = about(&mut request, 1234, 0);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("POST /check HTTP/1.1\r\nhost: "), "{head}");
        assert!(head.ends_with(&format!("content-length: {}", body.len())), "{head}");
        assert_eq!(body, r#"{"key":"user:00001234"}"#);
    }

    #[test]
    fn numbers_are_written_anew_in_whatever_order_they_stand() {
        for body in ["%k of %r", "%r of %k", "%r", "nothing"] {
            let mut request = Request::post("/", body);
            for (key, rule) in [(12_345_678, 9), (1, 87_654_321)] {
                let (key_text, rule_text) = (format!("{key:08}"), format!("{rule:08}"));
                let expected = body.replace(KEY, &key_text).replace(RULE, &rule_text);
                let text = about(&mut request, key, rule);
                assert_eq!(text.split_once("\r\n\r\n").unwrap().1, expected);
            }
        }
    }
}

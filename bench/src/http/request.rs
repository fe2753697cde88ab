//! Request templates: formatted once, sent many times with different key and rule numbers.

use crate::keys;

/// Placeholder of the key number in a body.
pub const KEY: &str = "%k";
/// Placeholder of the rule number in a body.
pub const RULE: &str = "%r";

/// The key and rule of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// The key number.
    pub key: u32,
    /// The number of the matching rule, if there are rules.
    pub rule: u32,
}

/// The bytes of a request. Numbers have eight digits, so that only these digits change.
#[derive(Debug, Clone)]
pub struct Request {
    bytes: Vec<u8>,
    key: Option<usize>,
    rule: Option<usize>,
}

impl Request {
    /// Creates a `POST` with a JSON body that may contain [`KEY`] and [`RULE`] once each.
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

    /// Writes the numbers into the request and returns its bytes.
    #[inline]
    pub fn with_numbers(&mut self, numbers: Numbers) -> &[u8] {
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
        String::from_utf8(request.with_numbers(Numbers { key, rule }).to_vec()).unwrap()
    }

    #[test]
    fn request_is_complete_with_correct_content_length() {
        let mut request = Request::post("/check", r#"{"key":"user:%k"}"#);
        let text = about(&mut request, 1234, 0);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("POST /check HTTP/1.1\r\nhost: "), "{head}");
        assert!(head.ends_with(&format!("content-length: {}", body.len())), "{head}");
        assert_eq!(body, r#"{"key":"user:00001234"}"#);
    }

    #[test]
    fn numbers_are_replaced_in_any_order() {
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

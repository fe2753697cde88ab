//! HTTP/1.1 requests of the load generator.

use super::response::Response;
use crate::Outcome;
use crate::load::codec::{Codec, Part};
use crate::load::template::{Numbers, Template};

/// The name of the protocol for the load generator.
pub const PROTOCOL: &str = "http";

/// Sends `POST` requests on a keep-alive connection, one at a time.
#[derive(Debug, Clone)]
pub struct HttpCodec(Template);

impl HttpCodec {
    /// Creates a codec for a path and a JSON body with placeholders.
    #[must_use]
    pub fn post(path: &str, body: &str) -> Self {
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len(),
        );
        Self(Template::new(request.into_bytes()))
    }
}

impl Codec for HttpCodec {
    fn encode(&mut self, numbers: Numbers, out: &mut Vec<u8>) -> Outcome<()> {
        self.0.write(numbers, out);
        Ok(())
    }

    fn decode(&mut self, received: &[u8], _out: &mut Vec<u8>) -> Outcome<Option<Part>> {
        let Some(response) = Response::parse(received)? else { return Ok(None) };
        response.ensure_allowed()?;
        Ok(Some(Part { bytes: received.len(), payload: Some(response.body.len()) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::template::KEY;

    #[test]
    fn request_is_complete_with_correct_content_length() {
        let mut codec = HttpCodec::post("/check", &format!(r#"{{"key":"user:{KEY}"}}"#));
        let mut out = Vec::new();
        codec.encode(Numbers { key: 1234, rule: 0 }, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("POST /check HTTP/1.1\r\nhost: "), "{head}");
        assert!(head.ends_with(&format!("content-length: {}", body.len())), "{head}");
        assert_eq!(body, r#"{"key":"user:00001234"}"#);
    }
}

//! The responses that are not sent yet, written as hyper writes them.

use std::time::Instant;

use http_body_util::{BodyExt, Collected};
use tollgate::Outcome;

use super::super::reply::Reply;
use super::date::Date;
use crate::wire::decision::{HandleText, write_decision};

/// The head of a decision up to the length of its body.
const DECISION_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ";
/// The usual number of digits of that length.
const LENGTH_ROOM: &[u8] = b"000";

/// Responses of one connection, in order.
#[derive(Debug, Default)]
pub(super) struct Answers {
    bytes: Vec<u8>,
    date: Date,
}

impl Answers {
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes all responses, which are sent, and keeps at most `kept` bytes of capacity.
    pub(super) fn clear(&mut self, kept: usize) {
        self.bytes.clear();
        if self.bytes.capacity() > kept {
            self.bytes.shrink_to(kept);
        }
    }

    /// Appends a decision with status 200.
    pub(super) fn decision(&mut self, outcome: &Outcome<'_, '_>, now: Instant) {
        let bytes = &mut self.bytes;
        bytes.extend_from_slice(DECISION_HEAD);
        let length_start = bytes.len();
        bytes.extend_from_slice(LENGTH_ROOM);
        end_head(bytes, self.date.at(now));
        let body_start = bytes.len();
        write_decision(bytes, outcome, HandleText::Permit);
        let mut digits = itoa::Buffer::new();
        let length = digits.format(bytes.len() - body_start).as_bytes();
        let room = length_start..length_start + LENGTH_ROOM.len();
        match bytes.get_mut(room.clone()) {
            Some(room) if room.len() == length.len() => room.copy_from_slice(length),
            _ => drop(bytes.splice(room, length.iter().copied())),
        }
    }

    /// Appends any other response.
    pub(super) async fn reply(&mut self, reply: Reply, now: Instant) {
        let (head, body) = reply.into_parts();
        // A complete body cannot fail.
        let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
        let (bytes, status) = (&mut self.bytes, head.status);
        bytes.extend_from_slice(b"HTTP/1.1 ");
        bytes.extend_from_slice(status.as_str().as_bytes());
        bytes.push(b' ');
        bytes.extend_from_slice(status.canonical_reason().unwrap_or("<none>").as_bytes());
        bytes.extend_from_slice(b"\r\n");
        for (name, value) in &head.headers {
            bytes.extend_from_slice(name.as_str().as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"content-length: ");
        bytes.extend_from_slice(itoa::Buffer::new().format(body.len()).as_bytes());
        end_head(bytes, self.date.at(now));
        bytes.extend_from_slice(&body);
    }
}

/// Writes the end of the length's line, and the date as the last header.
fn end_head(bytes: &mut Vec<u8>, date: &str) {
    bytes.extend_from_slice(b"\r\ndate: ");
    bytes.extend_from_slice(date.as_bytes());
    bytes.extend_from_slice(b"\r\n\r\n");
}

//! Encoding of requests and decoding of responses on one connection.

use super::template::Numbers;
use crate::Outcome;

/// The client side of a protocol, with the state of one connection.
pub trait Codec {
    /// Appends the bytes that a client sends before its first request.
    fn open(&mut self, _out: &mut Vec<u8>) {}

    /// Appends a request.
    ///
    /// # Errors
    /// The protocol does not permit another request on this connection.
    fn encode(&mut self, numbers: Numbers, out: &mut Vec<u8>) -> Outcome<()>;

    /// Decodes the first part of the received bytes: a response, or a message of the protocol itself, whose answer it
    /// appends to `out`. Returns `None` if the part is incomplete.
    ///
    /// # Errors
    /// The part is not a response that allows its request. The error contains it.
    fn decode(&mut self, received: &[u8], out: &mut Vec<u8>) -> Outcome<Option<Part>>;
}

/// A decoded part of the received bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Length in bytes.
    pub bytes: usize,
    /// Length of the response without its framing, in bytes; `None` if the part completes no response.
    pub payload: Option<usize>,
}

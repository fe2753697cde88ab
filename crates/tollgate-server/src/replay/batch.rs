//! Requests on their way from the thread that reads to the thread that decides.

use super::line::Payload;

/// Number of requests in a batch.
const REQUESTS: usize = 4096;

/// Requests in the order of their times.
#[derive(Debug, Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    /// Time of each request in microseconds, and the end of its facts in `bytes`.
    requests: Vec<(u64, usize)>,
}

impl Batch {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.requests.clear();
    }

    pub(super) fn is_full(&self) -> bool {
        self.requests.len() >= REQUESTS
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub(super) fn len(&self) -> u64 {
        u64::try_from(self.requests.len()).unwrap_or(u64::MAX)
    }

    /// Adds a request whose facts `write` appends.
    pub(super) fn add(&mut self, at: u64, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.requests.push((at, self.bytes.len()));
    }

    /// Returns the requests: time in microseconds, and pairs of fact index and value.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, impl Iterator<Item = (u8, &[u8])>)> {
        let mut start = 0;
        self.requests.iter().map(move |(at, end)| {
            let facts = self.bytes.get(start..*end).unwrap_or_default();
            start = *end;
            (*at, Payload::decode(facts))
        })
    }
}

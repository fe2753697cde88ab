//! The busiest minute of each client.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use tollgate::DefaultHasher;

const MINUTE: u64 = 60_000_000;

/// Requests per minute of the clients of one route.
#[derive(Debug, Default)]
pub(super) struct Peaks {
    clients: HashTable<(Box<str>, Client)>,
    hasher: DefaultHasher,
}

#[derive(Debug, Default)]
struct Client {
    minute: u64,
    count: u64,
    peak: u64,
}

/// How the busiest minutes are distributed over the clients.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Percentiles {
    pub(super) clients: usize,
    pub(super) median: u64,
    pub(super) p99: u64,
    pub(super) max: u64,
}

impl Peaks {
    pub(super) fn add(&mut self, subject: &str, at: u64) {
        let hasher = &self.hasher;
        let entry = self
            .clients
            .entry(
                hasher.hash_one(subject),
                |(known, _)| **known == *subject,
                |(known, _)| hasher.hash_one(&**known),
            )
            .or_insert_with(|| (subject.into(), Client::default()))
            .into_mut();
        let client = &mut entry.1;
        if client.minute != at / MINUTE {
            (client.minute, client.count) = (at / MINUTE, 0);
        }
        client.count += 1;
        client.peak = client.peak.max(client.count);
    }

    pub(super) fn percentiles(&self) -> Percentiles {
        let mut peaks: Vec<u64> = self.clients.iter().map(|(_, client)| client.peak).collect();
        peaks.sort_unstable();
        // The smallest peak that this many clients in a hundred do not exceed.
        let of = |hundredths: usize| {
            let rank = (peaks.len() * hundredths).div_ceil(100);
            peaks.get(rank.saturating_sub(1)).copied().unwrap_or_default()
        };
        Percentiles { clients: peaks.len(), median: of(50), p99: of(99), max: of(100) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_are_per_client_and_minute() {
        let mut peaks = Peaks::default();
        for (subject, at) in [("a", 0), ("a", 1), ("a", MINUTE), ("b", 0), ("c", 0), ("c", MINUTE)]
        {
            peaks.add(subject, at);
        }
        assert_eq!(peaks.percentiles(), Percentiles { clients: 3, median: 1, p99: 2, max: 2 });
    }
}

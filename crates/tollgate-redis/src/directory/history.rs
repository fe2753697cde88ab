//! The history: counts of all nodes per interval, for one day.

use std::time::Duration;

use tollgate::{StoreError, Timestamp};

use super::Directory;
use crate::failure::Failure;
use crate::limit_code::{millis, read_number, write_number};
use crate::resp::Reply;
use crate::script::Entry;

/// Number of intervals that are read in one call, which takes Redis less than a millisecond.
const INTERVALS_PER_CALL: usize = 60;

/// Encoded length of a count.
const COUNT_BYTES: usize = 7;

/// Counts of a node in one interval, to be added to those of the other nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingInterval {
    /// Length of the interval in whole seconds.
    pub length: Duration,
    /// Start of the interval.
    pub start: Timestamp,
    /// How long the interval is kept after the last report.
    pub keep: Duration,
    /// Counts by name. Beyond 63 names per interval, further names are added up under `…`.
    pub counts: Vec<(String, Vec<u64>)>,
}

/// Counts of all nodes in one interval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interval {
    /// Counts by name.
    pub counts: Vec<(String, Vec<u64>)>,
}

impl Directory {
    /// Reads intervals of this length with these starts. An interval without counts is empty.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use tollgate::Timestamp;
    /// use tollgate_redis::{Address, OutgoingInterval, RedisStore};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let (length, start) = (Duration::from_secs(10), Timestamp::from_micros(1_700_000_000_000_000));
    /// // Sent with `OutgoingFigures::history` by any number of nodes.
    /// let interval = OutgoingInterval {
    ///     length,
    ///     start,
    ///     keep: Duration::from_secs(3600),
    ///     counts: vec![("api".to_owned(), vec![12, 3])],
    /// };
    /// let directory = RedisStore::new(Address::local()).directory();
    /// let intervals = directory.history(length, &[start]).await?;
    /// assert_eq!(intervals[0].counts, interval.counts);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The call to Redis failed.
    pub async fn history(
        &self,
        length: Duration,
        starts: &[Timestamp],
    ) -> Result<Vec<Interval>, StoreError> {
        let mut intervals = Vec::with_capacity(starts.len());
        for starts in starts.chunks(INTERVALS_PER_CALL) {
            let keys = starts.iter().map(|start| self.keys.history(length, *start).into_bytes());
            let reply = self.run(Entry::History, keys.collect(), Vec::new()).await?;
            let Reply::Array(replies) = reply else {
                return Err(Failure::unexpected().into_store_error());
            };
            intervals.extend(replies.iter().map(parse));
        }
        Ok(intervals)
    }
}

impl OutgoingInterval {
    /// Returns the arguments of the script.
    pub(super) fn arguments(&self) -> Vec<Vec<u8>> {
        let [keep, size] = [millis(self.keep).max(1), self.counts.len() as u64];
        let mut arguments = vec![keep.to_string().into_bytes(), size.to_string().into_bytes()];
        for (name, counts) in &self.counts {
            let mut encoded = Vec::with_capacity(counts.len() * COUNT_BYTES);
            counts.iter().for_each(|count| write_number(&mut encoded, *count));
            arguments.extend([name.clone().into_bytes(), encoded]);
        }
        arguments
    }
}

/// Parses an interval. Fields that another program has written are skipped.
fn parse(reply: &Reply) -> Interval {
    let Reply::Array(fields) = reply else { return Interval::default() };
    let pairs = fields.chunks_exact(2).filter_map(|pair| {
        let [Reply::Bulk(name), Reply::Bulk(counts)] = pair else { return None };
        let counts = counts.chunks(COUNT_BYTES).map(|count| Some(read_number(count)?.0));
        Some((String::from_utf8(name.clone()).ok()?, counts.collect::<Option<_>>()?))
    });
    Interval { counts: pairs.collect() }
}

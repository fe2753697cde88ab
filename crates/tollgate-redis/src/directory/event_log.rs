//! The event log: changes of nodes, policies and overrides, and losses of Redis, kept for one day.

use std::time::Duration;

use tollgate::{StoreError, StoreErrorKind, Timestamp};

use super::Directory;
use crate::failure::Failure;
use crate::limit_code::micros;
use crate::resp::{Command, Reply};

/// How long events are kept.
pub const EVENT_HISTORY: Duration = Duration::from_secs(86_400);
/// Maximum number of events that are kept.
pub const MAX_EVENTS: usize = 10_000;

/// Number of events per call, and the maximum reply in bytes.
const PAGE_SIZE: usize = 500;
const MAX_PAGE_BYTES: usize = 16 << 20;

/// An event that a node adds to the event log with its next report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutgoingEvent<'a> {
    /// Number of the event, unique for its node. An event with a lost reply is sent again, and is added once.
    pub number: u64,
    /// Time since the event.
    pub age: Duration,
    /// Kind of the event, without a tab.
    pub kind: &'a str,
    /// Description of the event.
    pub detail: &'a str,
}

/// An event of the event log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggedEvent {
    /// Position of the event, for the next page of [`Directory::event_log`].
    pub cursor: String,
    /// Time of the event, by the clock of Redis.
    pub at: Timestamp,
    /// Kind of the event. `node_silent`, `node_back` and `node_left` come from this library.
    pub kind: String,
    /// The node that the event concerns.
    pub node: String,
    /// Description of the event.
    pub detail: String,
}

/// Events up to this time, without the first `skipped` of exactly this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    time: u64,
    skipped: u64,
}

impl Directory {
    /// Returns up to `max` events since a time, newest first: the newest of all, or those after the event with this
    /// cursor.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use tollgate::Timestamp;
    /// use tollgate_redis::{Address, NodeRecord, OutgoingEvent, OutgoingReport, RedisStore};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let directory = RedisStore::new(Address::local()).directory();
    /// let node = NodeRecord {
    ///     id: "web-1".to_owned(),
    ///     address: "10.0.0.7:8080".to_owned(),
    ///     registered_at: Timestamp::EPOCH,
    /// };
    /// let age = Duration::from_secs(60);
    /// let event = OutgoingEvent { number: 1, age, kind: "store_lost", detail: "timed out" };
    /// let lifetime = Duration::from_secs(30);
    /// let report = OutgoingReport { node: &node, lifetime, events: &[event], figures: None };
    /// let now = directory.report(&report).await?.at;
    /// let events = directory.event_log(now - Duration::from_secs(3600), None, 10).await?;
    /// assert_eq!(events[0].at, now - age);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The call to Redis failed, or `cursor` is not the cursor of an event.
    pub async fn event_log(
        &self,
        since: Timestamp,
        cursor: Option<&str>,
        max: usize,
    ) -> Result<Vec<LoggedEvent>, StoreError> {
        let mut position = cursor.map(Position::parse).transpose()?;
        let mut events = Vec::new();
        while events.len() < max {
            let count = PAGE_SIZE.min(max - events.len());
            let page = self.read_events(since, position, count).await?;
            for (time, member) in &page {
                let next = Position::after(*time, position);
                position = Some(next);
                events.extend(parse(*time, member, next));
            }
            if page.len() < count {
                break;
            }
        }
        Ok(events)
    }

    /// Returns times and members of events, newest first.
    async fn read_events(
        &self,
        since: Timestamp,
        position: Option<Position>,
        count: usize,
    ) -> Result<Vec<(u64, String)>, StoreError> {
        let key = self.keys.event_log();
        let until = position.map_or_else(|| "+inf".to_owned(), |last| last.time.to_string());
        let command = Command::new("ZREVRANGEBYSCORE").arg(&key).arg(until);
        let command = command.number(since.as_micros()).arg("WITHSCORES").arg("LIMIT");
        let command = command.number(position.map_or(0, |last| last.skipped));
        let command = command.number(count as u64).reply_up_to(MAX_PAGE_BYTES);
        let Reply::Array(replies) = self.request(&key, command).await? else {
            return Err(Failure::unexpected().into_store_error());
        };
        let text = |reply: &Reply| match reply {
            Reply::Bulk(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        };
        let pairs = replies.chunks_exact(2).map(|pair| match pair {
            [member, score] => Some((text(score)?.parse().ok()?, text(member)?)),
            _ => None,
        });
        pairs.collect::<Option<_>>().ok_or_else(|| Failure::unexpected().into_store_error())
    }
}

impl OutgoingEvent<'_> {
    /// Returns the arguments of the script.
    pub(super) fn arguments(&self) -> [Vec<u8>; 4] {
        let [number, age] = [self.number, micros(self.age)].map(|n| n.to_string().into_bytes());
        [number, age, self.kind.as_bytes().to_vec(), self.detail.as_bytes().to_vec()]
    }
}

impl Position {
    fn parse(text: &str) -> Result<Self, StoreError> {
        let parts = text.split_once('-');
        let parsed = parts.and_then(|(time, skipped)| {
            Some(Self { time: time.parse().ok()?, skipped: skipped.parse().ok()? })
        });
        parsed.ok_or_else(|| {
            let message = "invalid event cursor; use the cursor of the previous page";
            StoreError::new(StoreErrorKind::Cursor, message)
        })
    }

    /// Returns the position after an event of this time, which follows the position `before`.
    fn after(time: u64, before: Option<Self>) -> Self {
        let skipped = before.filter(|before| before.time == time).map_or(0, |last| last.skipped);
        Self { time, skipped: skipped + 1 }
    }
}

/// Parses an event, or returns `None` if another program has written it.
fn parse(time: u64, member: &str, position: Position) -> Option<LoggedEvent> {
    let mut parts = member.splitn(4, '\t');
    let (kind, node) = (parts.next()?, parts.next()?);
    let _number = parts.next()?;
    Some(LoggedEvent {
        cursor: format!("{}-{}", position.time, position.skipped),
        at: Timestamp::from_micros(time),
        kind: kind.to_owned(),
        node: node.to_owned(),
        detail: parts.next()?.to_owned(),
    })
}

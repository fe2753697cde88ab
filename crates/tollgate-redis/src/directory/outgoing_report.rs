//! The report that each node sends to Redis: it confirms that the node is up, and publishes its figures.

use std::time::Duration;

use tollgate::{StoreError, Timestamp};

use super::Directory;
use super::event_log::OutgoingEvent;
use super::history::OutgoingInterval;
use super::node_reports::REPORT_HISTORY;
use super::nodes::{Node, NodeRecord};
use crate::failure::Failure;
use crate::limit_code::{micros, millis};
use crate::resp::Reply;
use crate::script::Entry;

/// A node report to send.
#[derive(Debug, Clone, Copy)]
pub struct OutgoingReport<'a> {
    /// The node that sends the report. The first report registers it.
    pub node: &'a NodeRecord,
    /// How long the node counts as up after this report.
    pub lifetime: Duration,
    /// Events to add to the event log.
    pub events: &'a [OutgoingEvent<'a>],
    /// The figures to publish. Without them, the report only confirms that the node is up.
    pub figures: Option<OutgoingFigures<'a>>,
}

/// The published part of a node report. Its texts are opaque to this library.
#[derive(Debug, Clone, Copy)]
pub struct OutgoingFigures<'a> {
    /// Number of the report. A report with a lost reply is sent again with unchanged figures and the same number, and
    /// they count once.
    pub number: u64,
    /// The figures since the previous report. Kept for [`REPORT_HISTORY`].
    pub figures: &'a str,
    /// The same figures as counts per interval, to add to the history.
    pub history: &'a [OutgoingInterval],
    /// The current state of the node. Replaces the previous one.
    pub state: &'a str,
    /// How long the state is valid.
    pub state_lifetime: Duration,
}

/// The reply to a node report. Its cost does not grow with the number of nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReportReply {
    /// Time of the report, by the clock of Redis.
    pub at: Timestamp,
    /// The node with this id before the report, or `None` if there was none.
    pub previous: Option<Node>,
    /// Number of nodes that are up, including the one that reports.
    pub up: u32,
    /// Number of nodes that are down and still listed.
    pub down: u32,
    /// Number of nodes that have left cleanly. It starts again at 0 if Redis loses its data, and after a day without
    /// a departure.
    pub departures: u64,
    /// Number of events that were ever added to the event log: it changes with every event. It starts again at 0 if
    /// Redis loses its data, and after a day without an event.
    pub events: u64,
}

impl Directory {
    /// Sends a node report: one call, which registers the node for `lifetime` from now, publishes its figures and
    /// counts the nodes. Without further reports the node is listed as down for a day, then removed.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use tollgate::Timestamp;
    /// use tollgate_redis::{Address, NodeRecord, OutgoingFigures, OutgoingReport, ReportId, RedisStore};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let directory = RedisStore::new(Address::local()).directory();
    /// let node = NodeRecord {
    ///     id: "web-1".to_owned(),
    ///     address: "10.0.0.7:8080".to_owned(),
    ///     registered_at: Timestamp::EPOCH,
    /// };
    /// let state_lifetime = Duration::from_secs(10);
    /// let (figures, state) = ("7 checks", "ok");
    /// let figures = OutgoingFigures { number: 1, figures, history: &[], state, state_lifetime };
    /// let lifetime = Duration::from_secs(30);
    /// let report = OutgoingReport { node: &node, lifetime, events: &[], figures: Some(figures) };
    /// let reply = directory.report(&report).await?;
    /// assert_eq!(reply.up, 1);
    /// let page = directory.node_reports(&ReportId::before(reply.at)).await?;
    /// assert_eq!(page.reports[0].figures, "7 checks");
    /// assert_eq!(directory.node_states(&["web-1"]).await?, [Some("ok".to_owned())]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The call to Redis failed.
    pub async fn report(&self, report: &OutgoingReport<'_>) -> Result<ReportReply, StoreError> {
        let keys = &self.keys;
        let keys = [
            keys.nodes(),
            keys.node_deadlines(),
            keys.node_departures(),
            keys.node_reports(),
            keys.node_state(&report.node.id),
            keys.node_seen(),
            keys.node_grace(),
            keys.event_log(),
            keys.event_count(),
            keys.report_numbers(),
        ];
        let intervals = report.figures.map_or(&[][..], |figures| figures.history);
        let intervals = intervals.iter().map(|it| self.keys.history(it.length, it.start));
        let keys = keys.into_iter().chain(intervals).map(String::into_bytes).collect();
        let reply = self.run(Entry::NodeReport, keys, report.arguments()).await?;
        parse(&report.node.id, &reply).ok_or_else(|| Failure::unexpected().into_store_error())
    }
}

impl OutgoingReport<'_> {
    fn arguments(&self) -> Vec<Vec<u8>> {
        let number = |number: u64| number.to_string().into_bytes();
        let node = self.node;
        let mut arguments =
            vec![node.id.clone().into_bytes(), number(micros(self.lifetime)), node.encode()];
        arguments.push(number(self.events.len() as u64));
        arguments.extend(self.events.iter().flat_map(OutgoingEvent::arguments));
        if let Some(figures) = &self.figures {
            arguments.extend([
                number(figures.number),
                figures.figures.as_bytes().to_vec(),
                figures.state.as_bytes().to_vec(),
                number(millis(REPORT_HISTORY)),
                number(millis(figures.state_lifetime).max(1)),
            ]);
            arguments.extend(figures.history.iter().flat_map(OutgoingInterval::arguments));
        }
        arguments
    }
}

fn parse(id: &str, reply: &Reply) -> Option<ReportReply> {
    let Reply::Array(fields) = reply else { return None };
    let [Reply::Integer(at), Reply::Bulk(previous), counts @ ..] = fields.as_slice() else {
        return None;
    };
    let [up, all, departures, events] = counts else { return None };
    let count = |reply: &Reply| match reply {
        Reply::Integer(count) => u64::try_from(*count).ok(),
        _ => None,
    };
    let [up, all] = [up, all].map(|reply| u32::try_from(count(reply)?).ok());
    let (at, up) = (u64::try_from(*at).ok()?, up?);
    Some(ReportReply {
        at: Timestamp::from_micros(at),
        previous: Node::parse(id.as_bytes(), previous, at),
        up,
        down: all?.saturating_sub(up),
        departures: count(departures)?,
        events: count(events)?,
    })
}

//! Pages of the event log.

use serde::Serialize;
use tollgate::{Clock, SystemClock};
use tollgate_redis::{EVENT_HISTORY, LoggedEvent};

use crate::error::ApiError;
use crate::events::NodeEvent;
use crate::node::NodeContext;
#[cfg(test)]
use crate::reference_tests::names;
use crate::wire::time::rfc3339;

/// A page of the events of the last day, newest first.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Events"))]
pub(crate) struct EventsPage {
    events: Vec<Event>,
    /// The cursor of the next page; null on the last page.
    cursor: Option<String>,
    /// Whether the events of all nodes are included; false while Redis is lost.
    complete: bool,
}

/// An event.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Event {
    /// Time of the event, by the clock of Redis if the nodes share one.
    #[cfg_attr(test, schemars(with = "names::Time"))]
    at: String,
    #[cfg_attr(test, schemars(with = "names::EventKind"))]
    kind: String,
    /// The node that the event concerns.
    node: String,
    /// One sentence about the event.
    detail: String,
}

/// Returns a page of the events of all nodes. With the memory store and while Redis is lost, returns those of this node.
pub(super) async fn events(
    context: &NodeContext,
    cursor: Option<&str>,
    max: usize,
) -> Result<EventsPage, ApiError> {
    let Some(redis) = context.backend().redis() else { return own_events(context, cursor, max) };
    let page = own_events(context, cursor, max)?;
    let incomplete = EventsPage { complete: false, ..page };
    if context.is_degraded() {
        return Ok(incomplete);
    }
    let now = context.live().redis_time().unwrap_or_else(|| SystemClock::new().now());
    match redis.directory().event_log(now - EVENT_HISTORY, cursor, max).await {
        Ok(events) => {
            let next = events.last().filter(|_| events.len() >= max);
            let cursor = next.map(|last| last.cursor.clone());
            let events = events.into_iter().map(Event::from).collect();
            Ok(EventsPage { events, cursor, complete: true })
        }
        Err(error) => {
            context.metrics().store().note_failure(&error);
            Ok(incomplete)
        }
    }
}

/// Returns a page of the events of this node. A cursor is a time in microseconds and a position, as in Redis, so that
/// a listing can continue when Redis is lost.
fn own_events(
    context: &NodeContext,
    cursor: Option<&str>,
    max: usize,
) -> Result<EventsPage, ApiError> {
    let invalid = || ApiError::invalid("is not a cursor of this endpoint").at("cursor");
    let time = |cursor: &str| {
        let (time, position) = cursor.split_once('-')?;
        let _: u64 = position.parse().ok()?;
        time.parse::<u64>().ok()
    };
    let before = cursor.map(|cursor| time(cursor).ok_or_else(invalid)).transpose()?;
    let events = context.events().before(before, max);
    let next = events.last().filter(|_| events.len() >= max);
    let cursor = next.map(|last| format!("{}-1", last.number));
    let events = events.iter().map(|event| Event::of_node(context.node_id(), event)).collect();
    Ok(EventsPage { events, cursor, complete: true })
}

impl Event {
    fn of_node(node: &str, event: &NodeEvent) -> Self {
        Self {
            at: rfc3339(event.at()),
            kind: event.kind.as_str().to_owned(),
            node: node.to_owned(),
            detail: event.detail.clone(),
        }
    }
}

impl From<LoggedEvent> for Event {
    fn from(event: LoggedEvent) -> Self {
        Self { at: rfc3339(event.at), kind: event.kind, node: event.node, detail: event.detail }
    }
}

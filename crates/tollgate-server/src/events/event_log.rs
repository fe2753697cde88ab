//! The events of this node: all of the last day, and those that Redis does not have yet.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tollgate::{Clock, SystemClock, Timestamp};
use tollgate_redis::{EVENT_HISTORY, MAX_EVENTS, OutgoingEvent};

use super::EventKind;

/// Maximum number of events that wait for Redis.
const MAX_QUEUED: usize = 1000;
/// Maximum number of events per report.
const MAX_SENT: usize = 100;
/// Maximum length of a description, in characters.
const MAX_DETAIL_CHARS: usize = 500;

/// Whether events are also written to Redis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// With the memory store, events stay on this node.
    #[default]
    ThisNode,
    AllNodes,
}

/// An event of this node.
#[derive(Debug)]
pub(crate) struct NodeEvent {
    /// Time in microseconds by the clock of this node, increased where needed to be unique.
    pub(crate) number: u64,
    noted: Instant,
    pub(crate) kind: EventKind,
    pub(crate) detail: String,
}

/// The events of this node.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    sharing: Sharing,
    clock: SystemClock,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Events of the last day, oldest first.
    recent: VecDeque<Arc<NodeEvent>>,
    /// Events for Redis, oldest first.
    queue: VecDeque<Arc<NodeEvent>>,
    /// Number of events that did not fit into the queue.
    dropped: u64,
    last_number: u64,
    /// Number of events in Redis, as last reported.
    shared_events: u64,
}

impl NodeEvent {
    /// Returns the time of the event, by the clock of this node.
    pub(crate) const fn at(&self) -> Timestamp {
        Timestamp::from_micros(self.number)
    }
}

impl EventLog {
    pub(crate) fn new(sharing: Sharing) -> Self {
        Self { sharing, ..Self::default() }
    }

    /// Adds an event that happens now. Only the first line of the description is kept.
    pub(crate) fn add(&self, kind: EventKind, detail: &str) {
        self.add_at(self.clock.now(), kind, detail);
    }

    fn add_at(&self, now: Timestamp, kind: EventKind, detail: &str) {
        let detail = detail.lines().next().unwrap_or_default();
        let detail = detail.chars().take(MAX_DETAIL_CHARS).collect();
        let mut state = self.state.lock();
        let number = now.as_micros().max(state.last_number + 1);
        state.last_number = number;
        let event = Arc::new(NodeEvent { number, noted: Instant::now(), kind, detail });
        state.recent.push_back(Arc::clone(&event));
        let oldest = (now - EVENT_HISTORY).as_micros();
        while state.recent.len() > MAX_EVENTS
            || state.recent.front().is_some_and(|event| event.number < oldest)
        {
            state.recent.pop_front();
        }
        if self.sharing == Sharing::AllNodes {
            state.queue.push_back(event);
            if state.queue.len() > MAX_QUEUED {
                state.queue.pop_front();
                state.dropped += 1;
            }
        }
    }

    /// Returns up to `max` events of the last day before a number, newest first.
    pub(crate) fn before(&self, number: Option<u64>, max: usize) -> Vec<Arc<NodeEvent>> {
        let oldest = (self.clock.now() - EVENT_HISTORY).as_micros();
        let state = self.state.lock();
        let is_older = |event: &&Arc<NodeEvent>| number.is_none_or(|number| event.number < number);
        let events = state.recent.iter().rev().filter(is_older);
        events.take_while(|event| event.number >= oldest).take(max).cloned().collect()
    }

    /// Sets the number of events in Redis, as last reported.
    pub(crate) fn set_shared_events(&self, count: u64) {
        self.state.lock().shared_events = count;
    }

    /// Returns a text that changes with every event of this node and in Redis; `None` without events.
    pub(crate) fn version(&self) -> Option<String> {
        let state = self.state.lock();
        let numbers = (state.shared_events, state.last_number);
        (numbers != (0, 0)).then(|| format!("{}-{}", numbers.0, numbers.1))
    }

    /// Takes the oldest events out of the queue. The first mentions events that were dropped before it.
    fn take_queued(&self) -> Vec<QueuedEvent> {
        let mut state = self.state.lock();
        let size = state.queue.len().min(MAX_SENT);
        let events = state.queue.drain(..size);
        let mut events: Vec<QueuedEvent> =
            events.map(|event| QueuedEvent { detail: event.detail.clone(), event }).collect();
        if let Some(first) = events.first_mut() {
            match mem::take(&mut state.dropped) {
                0 => {}
                dropped => first.detail += &format!(" ({dropped} earlier events are lost)"),
            }
        }
        events
    }
}

/// Events that were sent to Redis but not confirmed. They are sent again unchanged, so that each is added once.
#[derive(Debug, Default)]
pub(crate) struct QueuedEvents {
    sent: Vec<QueuedEvent>,
}

#[derive(Debug)]
struct QueuedEvent {
    event: Arc<NodeEvent>,
    detail: String,
}

impl QueuedEvents {
    /// Returns the events to send: those without a confirmation, or the next ones.
    pub(crate) fn next_to_send(&mut self, log: &EventLog) -> Vec<OutgoingEvent<'_>> {
        if self.sent.is_empty() {
            self.sent = log.take_queued();
        }
        let outgoing = self.sent.iter().map(|queued| OutgoingEvent {
            number: queued.event.number,
            age: queued.event.noted.elapsed().min(EVENT_HISTORY - Duration::from_secs(1)),
            kind: queued.event.kind.as_str(),
            detail: &queued.detail,
        });
        outgoing.collect()
    }

    /// Notes that Redis has confirmed the events that were sent.
    pub(crate) fn confirm(&mut self) {
        self.sent.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: EventKind = EventKind::StoreLost;

    fn numbers(queued: &mut QueuedEvents, log: &EventLog) -> Vec<u64> {
        queued.next_to_send(log).iter().map(|event| event.number).collect()
    }

    #[test]
    fn events_are_sent_until_they_are_confirmed() {
        let (log, mut queued) = (EventLog::new(Sharing::AllNodes), QueuedEvents::default());
        assert_eq!(log.version(), None);
        let now = log.clock.now();
        log.add_at(now, KIND, "first\nsecond line");
        let first = numbers(&mut queued, &log);
        assert_eq!(first, [now.as_micros()]);
        log.add_at(now, KIND, "same time");
        assert_eq!(numbers(&mut queued, &log), first, "a resend is unchanged");
        queued.confirm();
        assert_eq!(numbers(&mut queued, &log), [now.as_micros() + 1]);
        queued.confirm();
        assert_eq!(numbers(&mut queued, &log), Vec::<u64>::new());
        let recent = log.before(None, 9);
        let details: Vec<&str> = recent.iter().map(|event| &*event.detail).collect();
        assert_eq!(details, ["same time", "first"]);
        assert_eq!(log.before(Some(recent[0].number), 9).len(), 1);
        let version = log.version();
        log.set_shared_events(2);
        assert_ne!(log.version(), version);
    }

    #[test]
    fn queue_drops_the_oldest_events_and_mentions_them() {
        let (log, mut queued) = (EventLog::new(Sharing::AllNodes), QueuedEvents::default());
        for nth in 0..MAX_QUEUED + 7 {
            log.add(KIND, &nth.to_string());
        }
        let mut details = Vec::new();
        loop {
            let events = queued.next_to_send(&log);
            assert!(events.len() <= MAX_SENT);
            if events.is_empty() {
                break;
            }
            details.extend(events.iter().map(|event| event.detail.to_owned()));
            queued.confirm();
        }
        assert_eq!(details.len(), MAX_QUEUED);
        assert_eq!(details[0], "7 (7 earlier events are lost)");
        assert_eq!(details[1], "8");
        assert_eq!(log.before(None, usize::MAX).len(), MAX_QUEUED + 7, "this node has all");
    }

    #[test]
    fn recent_events_are_bounded_in_number_and_time() {
        let log = EventLog::default();
        let now = log.clock.now();
        log.add_at(now - EVENT_HISTORY - Duration::from_secs(1), KIND, "old");
        assert_eq!(log.before(None, 9).len(), 0);
        for _ in 0..MAX_EVENTS + 5 {
            log.add_at(now, KIND, "x");
        }
        assert_eq!(log.before(None, usize::MAX).len(), MAX_EVENTS);
        assert!(log.state.lock().queue.is_empty(), "no queue without Redis");
    }
}

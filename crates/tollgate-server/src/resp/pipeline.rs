//! Pipelined decisions: with Redis as the store, those that arrive together are decided together.

use std::mem;
use std::ops::Range;

use futures_util::future::join_all;
use tollgate_redis::together;

use super::decide::DecisionCall;
use super::encode::Replies;
use super::error_reply::ErrorReply;
use super::throttle::ThrottleCall;
use crate::api::{DecisionSeries, Service, UndeliveredPermit};

/// Maximum number of pipelined commands of one connection that wait for Redis at the same time.
const MAX_CONCURRENT: usize = 64;

/// The reply in place of a permit. A closed connection cannot be distinguished from one whose client only reads.
const WITHHELD: ErrorReply = ErrorReply::fixed(
    "ERR the client has closed its side of the connection, so the slots of this command are released",
);

/// The decisions of one connection.
#[derive(Debug)]
pub(super) struct Pipeline<'s> {
    service: &'s Service,
    /// Calls that are decided together, all of one verb. Empty if the store is in memory, which decides at once.
    waiting: Vec<DecisionCall<'static>>,
    /// Permits in the replies, with the positions of their replies, in order. Their slots are released unless the client
    /// receives them.
    undelivered: Vec<(Range<usize>, UndeliveredPermit)>,
    is_concurrent: bool,
}

impl<'s> Pipeline<'s> {
    pub(super) fn new(service: &'s Service) -> Self {
        let is_concurrent = service.has_shared_store();
        Self { service, waiting: Vec::new(), undelivered: Vec::new(), is_concurrent }
    }

    /// Decides a call and appends its reply, together with the calls that follow if they share store calls.
    pub(super) async fn decide(&mut self, call: DecisionCall<'_>, replies: &mut Replies) {
        if self.is_concurrent {
            return self.enqueue(call.into_owned(), replies).await;
        }
        let start = replies.len();
        let permit = call.run(self.service, replies).await;
        self.undelivered.extend(permit.map(|permit| (start..replies.len(), permit)));
    }

    /// As [`decide`](Self::decide), for a call that the caller keeps. `series` contains the calls of one read.
    pub(super) async fn decide_throttle(
        &mut self,
        call: &ThrottleCall,
        series: &mut Option<DecisionSeries<'s>>,
        replies: &mut Replies,
    ) {
        if self.is_concurrent {
            return self.enqueue(DecisionCall::Throttle(Box::new(call.clone())), replies).await;
        }
        let series = series.get_or_insert_with(|| self.service.series());
        if let Err(error) = call.run(series, replies).await {
            replies.error(&ErrorReply::from(error));
        }
    }

    /// Decides a call together with those that follow. Replies are appended in order.
    async fn enqueue(&mut self, call: DecisionCall<'static>, replies: &mut Replies) {
        let is_same_verb = |first: &DecisionCall<'_>| first.verb() == call.verb();
        // Calls of different verbs, and calls about permits, could overtake each other.
        if !self.waiting.first().is_none_or(is_same_verb) || call.verb().is_none() {
            self.finish(replies).await;
        }
        self.waiting.push(call);
        if self.waiting.len() >= MAX_CONCURRENT {
            self.finish(replies).await;
        }
    }

    /// Decides the calls that wait, and appends their replies in order. Calls are submitted to the store in order, so that
    /// calls about one key are decided in order.
    pub(super) async fn finish(&mut self, replies: &mut Replies) {
        if self.waiting.is_empty() {
            return;
        }
        let service = self.service;
        let run = async |call: DecisionCall<'static>| {
            let mut reply = Replies::default();
            let permit = call.run(service, &mut reply).await;
            (reply, permit)
        };
        // Boxed, so that it does not enlarge the future of connections without Redis.
        let results = Box::pin(together(join_all(self.waiting.drain(..).map(run)))).await;
        for (reply, permit) in results {
            let start = replies.len();
            replies.append(reply.as_bytes());
            self.undelivered.extend(permit.map(|permit| (start..replies.len(), permit)));
        }
    }

    /// Returns whether the unsent replies contain permits.
    pub(super) const fn has_undelivered(&self) -> bool {
        !self.undelivered.is_empty()
    }

    /// Records that the client has received all permits.
    pub(super) fn set_delivered(&mut self) {
        mem::take(&mut self.undelivered).iter().for_each(|(_, permit)| permit.set_delivered());
    }

    /// Releases the slots of all permits in the unsent replies, and replaces these replies by errors.
    pub(super) fn withhold_permits(&mut self, replies: &mut Replies) {
        // From the last to the first, so that the positions stay valid.
        for (reply, _released) in mem::take(&mut self.undelivered).into_iter().rev() {
            replies.replace_by_error(reply, &WITHHELD);
        }
    }
}

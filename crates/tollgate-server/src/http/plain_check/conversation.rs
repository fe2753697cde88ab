//! The plain checks of one connection: answers the complete requests in the input, in order.

use std::mem::MaybeUninit;
use std::time::Instant;

use tollgate::Verb;

use super::super::auth;
use super::super::decide::{decision_reply, is_decided};
use super::super::reply::problem;
use super::answers::Answers;
use super::input::{Input, MAX_INPUT};
use super::request::{MAX_HEADERS, Parsed, PlainRequest, parse};
use crate::api::{DecisionSeries, Service};
use crate::listener::{Connection, RequestInProgress};
use crate::telemetry::Span;
use crate::wire::query;

/// Length of the unsent responses in bytes after which they are sent before the next request is read.
const MAX_UNSENT: usize = 64 * 1024;
/// The route in metrics.
const ROUTE: &str = "/check";

/// Why requests are no longer answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    /// There is no complete head in the input.
    NeedsHead,
    /// The body of a plain check is incomplete.
    NeedsBody,
    /// There are enough responses to send them.
    NeedsSending,
    /// The next request is not a plain check.
    HandOver,
}

/// The plain checks of one connection.
#[derive(Debug)]
pub(super) struct Conversation<'s> {
    service: &'s Service,
    connection: &'s Connection,
    pub(super) input: Input,
    pub(super) answers: Answers,
    /// The request whose body is incomplete, which the idle time-out does not concern.
    in_progress: Option<RequestInProgress>,
}

/// The requests that arrived together.
struct Batch<'s> {
    series: DecisionSeries<'s>,
    /// The number of authenticated requests.
    requests: u64,
    /// The end of the last request, which is the begin of the next one for the metrics.
    since: Instant,
    _in_progress: RequestInProgress,
}

impl<'s> Conversation<'s> {
    pub(super) fn new(service: &'s Service, connection: &'s Connection) -> Self {
        let (input, answers) = (Input::default(), Answers::default());
        Self { service, connection, input, answers, in_progress: None }
    }

    /// Returns the bytes that are not answered.
    pub(super) fn into_unread(self) -> Vec<u8> {
        self.input.into_unread()
    }

    /// Answers the complete requests in the input.
    pub(super) async fn answer(&mut self) -> Pause {
        let mut batch = None;
        let pause = self.answer_batch(&mut batch).await;
        if let Some(Batch { requests, .. }) = batch
            && requests > 0
        {
            self.connection.count_requests(requests);
        }
        if pause == Pause::NeedsHead && !self.input.is_empty() {
            self.connection.begin_next_request();
        }
        if pause == Pause::NeedsBody && self.in_progress.is_none() {
            self.in_progress = Some(self.connection.begin_request());
        }
        pause
    }

    async fn answer_batch(&mut self, batch: &mut Option<Batch<'s>>) -> Pause {
        let (service, connection) = (self.service, self.connection);
        loop {
            if self.answers.as_bytes().len() >= MAX_UNSENT {
                return Pause::NeedsSending;
            }
            let Self { input, answers, in_progress, .. } = self;
            let mut room = [const { MaybeUninit::uninit() }; MAX_HEADERS];
            let unread = input.unread();
            let request = match parse(unread, &mut room) {
                Parsed::Complete(request) => request,
                Parsed::IncompleteHead if unread.len() < MAX_INPUT => return Pause::NeedsHead,
                Parsed::IncompleteBody { length } if length <= MAX_INPUT => {
                    return Pause::NeedsBody;
                }
                _ => return Pause::HandOver,
            };
            // The responses of a node that is not ready close their connections.
            if !service.is_ready() {
                return Pause::HandOver;
            }
            let batch = batch.get_or_insert_with(|| Batch {
                series: service.series(),
                requests: 0,
                since: Instant::now(),
                _in_progress: in_progress.take().unwrap_or_else(|| connection.begin_request()),
            });
            let length = request.length;
            let Some(status) = batch.answer(service, connection, &request, answers).await else {
                return Pause::HandOver;
            };
            input.advance(length);
            let now = Instant::now();
            let took = now.duration_since(batch.since);
            service.http_requests().count(ROUTE, status, took);
            batch.since = now;
        }
    }
}

impl Batch<'_> {
    /// Appends the response to a request and returns its status; `None` if hyper has to answer it.
    async fn answer(
        &mut self,
        service: &Service,
        connection: &Connection,
        request: &PlainRequest<'_, '_>,
        answers: &mut Answers,
    ) -> Option<u16> {
        let now = self.since;
        let peer = connection.peer().ip();
        let reply = match auth::admit(service, || request.authorizations(), peer) {
            Err(refusal) => refusal,
            Ok(()) => match query::read(request.body) {
                // The slots of a response that is not delivered are released, which hyper's connection does.
                Ok(query) if service.may_hold_slots(&query) => return None,
                Ok(query) => {
                    self.requests += 1;
                    let encode = |outcome: &tollgate::Outcome<'_, '_>| {
                        if is_decided(outcome) {
                            answers.decision(outcome, now);
                            return None;
                        }
                        Some(decision_reply(outcome))
                    };
                    let span = &mut Span::none();
                    match self.series.decide(Verb::Take, &query, span, encode).await {
                        Ok(None) => return Some(200),
                        Ok(Some(reply)) => reply,
                        Err(error) => problem(&error),
                    }
                }
                Err(error) => {
                    self.requests += 1;
                    problem(&error)
                }
            },
        };
        let status = reply.status().as_u16();
        answers.reply(reply, now).await;
        Some(status)
    }
}

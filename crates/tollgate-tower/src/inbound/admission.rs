//! Whether a request comes in, and what is done when its response is there.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Response, response};
use http_body::Body;
use tollgate::{Asked, Current, Facts, LimiterError, Observer, Outcome, Request, Store, Verb};

use super::bill::{Bill, Unpaid};
use super::body::{AtEnd, ResponseBody};
use super::charge::{Entry, Payment};
use super::held::{Held, Taken};
use super::settings::{OnError, Settings};
use super::told::Fields;

/// Whether a request comes in.
pub(super) enum Admission<S: Store + 'static, O: Observer + 'static> {
    Refused(Response<Bytes>),
    Passed(Pass<S, O>),
}

/// A request that is being served.
pub(super) struct Pass<S: Store + 'static, O: Observer + 'static> {
    settings: Arc<Settings<S, O>>,
    fields: Fields,
    held: Option<Held>,
    due: Due<S, O>,
}

/// What is left to settle.
enum Due<S: Store + 'static, O: Observer + 'static> {
    Nothing,
    /// What was taken is given back if the response does not count.
    Taken(Box<Bill<S, O>>),
    /// Nothing was taken yet.
    Unpaid(Unpaid<S, O>),
}

/// What a decision comes to.
enum Said {
    Refused(Response<Bytes>),
    Passed(Fields, Option<Taken>),
}

impl<S: Store + 'static, O: Observer + 'static> Admission<S, O> {
    /// Asks the limiter.
    pub(super) async fn of(settings: &Arc<Settings<S, O>>, request: &Parts) -> Self {
        let current = settings.limiter.current();
        let facts = settings.sources.gather(current.policy(), request);
        let kept = settings.charging.is_settled_later().then(|| facts.clone().into_owned());
        let entry = settings.charging.entry(request);
        let (verb, cost) = match entry {
            Entry::Take(cost) => (Verb::Take, cost),
            Entry::Look => (Verb::Peek, 1),
        };
        let asked = Asked::ByPolicy(Request::new(facts).with_cost(cost));
        let say = |outcome: &Outcome<'_, '_>| settings.say(outcome, request);
        let said = settings.limiter.decide_by(&current, verb, &asked, say).await;
        drop(asked);
        match said {
            Ok(Said::Refused(response)) => Self::Refused(response),
            Ok(Said::Passed(fields, taken)) => {
                let held = taken.map(|taken| Held::new(&settings.limiter, taken));
                let due = kept.map_or(Due::Nothing, |facts| {
                    Due::new(Arc::clone(settings), current, facts, entry)
                });
                Self::Passed(Pass { settings: Arc::clone(settings), fields, held, due })
            }
            Err(error) => settings.undecided(&error, request),
        }
    }
}

impl<S: Store + 'static, O: Observer + 'static> Settings<S, O> {
    fn say(&self, outcome: &Outcome<'_, '_>, request: &Parts) -> Said {
        match self.refusing.of(outcome, request, &self.telling) {
            Some(refusal) => Said::Refused(refusal),
            None => Said::Passed(self.telling.of(outcome.decision), Taken::of(outcome)),
        }
    }

    fn undecided(self: &Arc<Self>, error: &LimiterError, request: &Parts) -> Admission<S, O> {
        self.failed(error);
        match self.on_error {
            OnError::Refuse => Admission::Refused(self.refusing.undecided(request)),
            OnError::Pass => Admission::Passed(Pass {
                settings: Arc::clone(self),
                fields: Fields::new(),
                held: None,
                due: Due::Nothing,
            }),
        }
    }
}

impl<S: Store + 'static, O: Observer + 'static> Due<S, O> {
    fn new(
        settings: Arc<Settings<S, O>>,
        current: Arc<Current<O::Handles>>,
        facts: Facts<'static>,
        entry: Entry,
    ) -> Self {
        match entry {
            Entry::Take(cost) => Self::Taken(Box::new(Bill::new(settings, current, facts, cost))),
            Entry::Look => {
                Self::Unpaid(Unpaid::new(Box::new(Bill::new(settings, current, facts, 0))))
            }
        }
    }
}

impl<S: Store + 'static, O: Observer + 'static> Pass<S, O> {
    /// Settles what the response's head tells, and has the rest settled when its body ends.
    pub(super) async fn settle<B: Body>(self, response: Response<B>) -> Response<ResponseBody<B>> {
        let Self { settings, mut fields, held, due } = self;
        let (mut head, body) = response.into_parts();
        let rest = match due {
            Due::Nothing => None,
            Due::Taken(_) if settings.charging.counts(&head) => None,
            Due::Taken(bill) => {
                fields = bill.give_back().await.unwrap_or(fields);
                None
            }
            Due::Unpaid(unpaid) => match settings.price(&head, &body) {
                Price::Known(cost) => {
                    if let Some(bill) = unpaid.into_bill() {
                        fields = bill.pay(cost).await.unwrap_or(fields);
                    }
                    None
                }
                Price::AtEnd => unpaid.into_bill(),
            },
        };
        settings.telling.tell(&mut head.headers, fields);
        let at_end = settings.at_end(held, rest);
        Response::from_parts(head, ResponseBody::of_service(body, at_end))
    }

    /// The service failed: it has no response to count.
    pub(super) async fn settle_failure(self) {
        if let Due::Taken(bill) = self.due {
            let (failure, ()) = Response::builder()
                .status(http::StatusCode::INTERNAL_SERVER_ERROR)
                .body(())
                .unwrap_or_default()
                .into_parts();
            if !self.settings.charging.counts(&failure) {
                bill.give_back().await;
            }
        }
    }
}

/// What a response costs.
enum Price {
    Known(u64),
    AtEnd,
}

impl<S: Store + 'static, O: Observer + 'static> Settings<S, O> {
    fn price<B: Body>(&self, head: &response::Parts, body: &B) -> Price {
        let cost = match &self.charging.payment {
            Payment::Before => 0,
            _ if !self.charging.counts(head) => 0,
            Payment::ByHead(cost) => cost(head),
            Payment::BySize(cost) => match body.size_hint().exact() {
                Some(size) => cost(size),
                None => return Price::AtEnd,
            },
        };
        Price::Known(cost)
    }

    fn at_end(&self, held: Option<Held>, rest: Option<Box<Bill<S, O>>>) -> AtEnd {
        let size = match &self.charging.payment {
            Payment::BySize(cost) => Some(Arc::clone(cost)),
            _ => None,
        };
        match (rest, size) {
            (Some(bill), Some(cost)) => AtEnd::new(move |sent| {
                drop(held);
                bill.pay_later(cost(sent));
            }),
            _ if held.is_some() => AtEnd::new(move |_| drop(held)),
            _ => AtEnd::default(),
        }
    }
}

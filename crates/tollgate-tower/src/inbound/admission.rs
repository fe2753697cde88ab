//! Whether a request comes in.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::Response;
use http::request::Parts;
use tollgate::{
    ActivePolicy, Facts, LimiterError, Observer, Outcome, Query, Receipt, Request, Store,
    StoreError, StoreErrorKind,
};

use super::cost::Entry;
use super::deferred_charge::Bill;
use super::headers::Fields;
use super::in_flight::{Due, Pass};
use super::settings::{OnError, Settings};
use super::slot_guard::{Held, Slots};
use crate::background::Carried;
use crate::facts::Head;

/// Whether a request comes in.
pub(super) enum Admission<S: Store + 'static, O: Observer + 'static> {
    Refused(Response<Bytes>),
    Passed(Pass<S, O>),
}

/// A request's head, and what becomes of it.
type Admitted<S, O> = (Parts, Admission<S, O>);

/// The limiter is being asked.
pub(super) type Admitting<S, O> = Pin<Box<dyn Future<Output = Admitted<S, O>> + Send>>;

/// What a decision comes to.
enum Said {
    Refused(Response<Bytes>),
    Passed(Fields, Option<Slots>, Option<Receipt>),
}

impl<S: Store + 'static, O: Observer + 'static> Admission<S, O> {
    /// Asks a limiter whose store may have to be waited for.
    pub(super) fn begin(settings: &Arc<Settings<S, O>>, head: Parts) -> Admitting<S, O> {
        let (settings, current) = (Arc::clone(settings), settings.limiter.active_policy());
        let holds_slots = current.policy().holds_slots();
        let admitting = async move {
            let admission = Self::of(&settings, current, &Head::from(&head)).await;
            (head, admission)
        };
        if holds_slots {
            // A client that goes away while a slot is being taken for it does not take it along.
            return Box::pin(Carried::new(admitting));
        }
        Box::pin(admitting)
    }

    /// Asks a limiter whose store answers at once: without a future to be kept, and without a clone of the
    /// service to be called later.
    pub(super) fn now(settings: &Arc<Settings<S, O>>, request: &Head<'_>) -> Self {
        let asking = pin!(Self::of(settings, settings.limiter.active_policy(), request));
        match asking.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(admission) => admission,
            Poll::Pending => {
                let late = "the store promised to answer at once, and did not";
                let late = StoreError::new(StoreErrorKind::Timeout, late);
                settings.undecided(&LimiterError::from(late), request)
            }
        }
    }

    async fn of(
        settings: &Arc<Settings<S, O>>,
        current: Arc<ActivePolicy<O::Handles>>,
        request: &Head<'_>,
    ) -> Self {
        let entry = settings.charging.entry(request);
        // What is held while the store is asked makes every request's future as large, so it is little.
        let (asked, kept) = settings.question(&current, request, entry);
        let say = |outcome: &Outcome<'_, '_>| settings.say(outcome, request);
        let said = settings.limiter.decide_with(&current, entry.verb(), &asked, say).await;
        drop(asked);
        match said {
            Ok(Said::Refused(response)) => Self::Refused(response),
            Ok(Said::Passed(fields, slots, taken)) => {
                let held = slots.map(|slots| Held::new(&settings.limiter, slots));
                let due = match (kept, taken) {
                    (Some(facts), Some(taken)) => {
                        let taken = (entry.cost(), taken);
                        let bill = Bill::new(Arc::clone(settings), current, facts, taken);
                        Due::new(Box::new(bill), entry)
                    }
                    _ => Due::Nothing,
                };
                Self::Passed(Pass::new(Arc::clone(settings), fields, held, due))
            }
            Err(error) => settings.undecided(&error, request),
        }
    }
}

impl<S: Store + 'static, O: Observer + 'static> Settings<S, O> {
    /// What is asked, and what is kept of it where something is settled later.
    #[inline]
    fn question<'r>(
        &'r self,
        current: &'r ActivePolicy<O::Handles>,
        request: &Head<'r>,
        entry: Entry,
    ) -> (Query<'r>, Option<Box<Facts<'static>>>) {
        let facts = self.sources.gather(current.policy(), request);
        let is_kept = self.charging.is_settled_later();
        let kept = is_kept.then(|| Box::new(facts.clone().into_owned()));
        (Query::ByPolicy(Request::new(facts).with_cost(entry.cost())), kept)
    }

    fn say(&self, outcome: &Outcome<'_, '_>, request: &Head<'_>) -> Said {
        match self.refusing.of(outcome, request, &self.telling) {
            Some(refusal) => Said::Refused(refusal),
            None => {
                let taken = self.charging.is_settled_later().then(|| Receipt::of(outcome));
                Said::Passed(self.telling.of(outcome.decision), Slots::of(outcome), taken)
            }
        }
    }

    fn undecided(self: &Arc<Self>, error: &LimiterError, request: &Head<'_>) -> Admission<S, O> {
        self.failed(error);
        match (self.on_error, error) {
            // Who can make more rules match than a plan holds must not pass by it.
            (OnError::Refuse, _) | (_, LimiterError::Plan(_)) => {
                Admission::Refused(self.refusing.undecided(request, &self.telling))
            }
            (OnError::Pass, _) => {
                let (settings, told) = (Arc::clone(self), Fields::default());
                Admission::Passed(Pass::new(settings, told, None, Due::Nothing))
            }
        }
    }
}

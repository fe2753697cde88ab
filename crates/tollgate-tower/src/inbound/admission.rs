//! Admission: decides a request before the service receives it.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::Response;
use http::request::Parts;
use tollgate::{
    ActivePolicy, Facts, LimiterError, MAX_FACT_LENGTH, Observer, Outcome, PathError, Query,
    Receipt, Refusal, Request, Store, StoreError, StoreErrorKind,
};

use super::cost::AdmissionCharge;
use super::decision::RateLimitDecision;
use super::deferred_charge::DeferredCharge;
use super::headers::HeaderValues;
use super::in_flight::{InFlight, PendingCharge};
use super::settings::{ErrorAction, Settings};
use super::slot_guard::{AcquiredSlots, SlotGuard};
use crate::background::RunToCompletion;
use crate::facts::RequestHead;

/// The result of admission.
pub(super) enum Admission<S: Store + 'static, O: Observer + 'static> {
    Refused(Response<Bytes>),
    /// With the decision to insert into the request extensions, if the layer exposes it.
    Admitted(InFlight<S, O>, Option<RateLimitDecision>),
}

/// An admission in progress. It owns the request head and returns it with the result.
pub(super) type AdmissionFuture<S, O> =
    Pin<Box<dyn Future<Output = (Parts, Admission<S, O>)> + Send>>;

/// The owned part of a decision.
enum Decided {
    Refused(Response<Bytes>),
    Admitted(Admitted),
}

struct Admitted {
    header_values: HeaderValues,
    slots: Option<AcquiredSlots>,
    receipt: Option<Receipt>,
    exposed: Option<RateLimitDecision>,
}

impl<S: Store + 'static, O: Observer + 'static> Admission<S, O> {
    /// Decides with a store that may have to wait for a reply.
    pub(super) fn decide_async(
        settings: &Arc<Settings<S, O>>,
        head: Parts,
    ) -> AdmissionFuture<S, O> {
        let (settings, policy) = (Arc::clone(settings), settings.limiter.active_policy());
        let holds_slots = policy.policy().holds_slots();
        let admission = async move {
            let admission = Self::decide(&settings, policy, &RequestHead::from(&head)).await;
            (head, admission)
        };
        if holds_slots {
            // Releases the slot if the client disconnects while the store grants it.
            return Box::pin(RunToCompletion::new(admission));
        }
        Box::pin(admission)
    }

    /// Decides with a store that replies in one poll. This avoids boxing a future and cloning the service.
    pub(super) fn decide_now(settings: &Arc<Settings<S, O>>, request: &RequestHead<'_>) -> Self {
        let admission = pin!(Self::decide(settings, settings.limiter.active_policy(), request));
        match admission.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(admission) => admission,
            Poll::Pending => {
                let message = "the store declares IS_IMMEDIATE but did not complete in one poll";
                let error = StoreError::new(StoreErrorKind::Timeout, message);
                settings.on_limiter_error(&LimiterError::from(error), request)
            }
        }
    }

    async fn decide(
        settings: &Arc<Settings<S, O>>,
        policy: Arc<ActivePolicy<O::Handles>>,
        request: &RequestHead<'_>,
    ) -> Self {
        if request.uri.path().len() > MAX_FACT_LENGTH {
            let refusal = Refusal::of_path(PathError::TooLong);
            return Self::Refused(settings.refusals.respond_undecided(
                refusal,
                request,
                &settings.headers,
            ));
        }
        let charge = settings.cost.at_admission(request);
        // Values held across the await enlarge the future of every request, so keep them few.
        let (query, kept_facts) = settings.query(&policy, request, charge);
        let on_outcome = |outcome: &Outcome<'_, '_>| settings.on_outcome(outcome, request);
        let decided =
            settings.limiter.decide_with(&policy, charge.verb(), &query, on_outcome).await;
        drop(query);
        match decided {
            Ok(Decided::Refused(response)) => Self::Refused(response),
            Ok(Decided::Admitted(Admitted { header_values, slots, receipt, exposed })) => {
                let slots = slots.map(|slots| SlotGuard::new(&settings.limiter, slots));
                let pending = match (kept_facts, receipt) {
                    (Some(facts), Some(receipt)) => {
                        let taken = (charge.cost(), receipt);
                        let deferred =
                            DeferredCharge::new(Arc::clone(settings), policy, facts, taken);
                        PendingCharge::new(Box::new(deferred), charge)
                    }
                    _ => PendingCharge::None,
                };
                let settings = Arc::clone(settings);
                Self::Admitted(InFlight::new(settings, header_values, slots, pending), exposed)
            }
            Err(error) => settings.on_limiter_error(&error, request),
        }
    }
}

impl<S: Store + 'static, O: Observer + 'static> Settings<S, O> {
    /// Returns the query, and an owned copy of its facts if a charge is settled after the response.
    #[inline]
    fn query<'r>(
        &'r self,
        policy: &'r ActivePolicy<O::Handles>,
        request: &RequestHead<'r>,
        charge: AdmissionCharge,
    ) -> (Query<'r>, Option<Box<Facts<'static>>>) {
        let facts = self.sources.gather(policy.policy(), request);
        let is_kept = self.cost.is_settled_after_response();
        let kept_facts = is_kept.then(|| Box::new(facts.clone().into_owned()));
        (Query::ByPolicy(Request::new(facts).with_cost(charge.cost())), kept_facts)
    }

    fn on_outcome(&self, outcome: &Outcome<'_, '_>, request: &RequestHead<'_>) -> Decided {
        match self.refusals.respond_to(outcome, request, &self.headers) {
            Some(refusal) => Decided::Refused(refusal),
            None => {
                let is_settled_later = self.cost.is_settled_after_response();
                let expose = || RateLimitDecision::new(outcome.to_owned_decision());
                Decided::Admitted(Admitted {
                    header_values: self.headers.values(outcome.decision),
                    slots: AcquiredSlots::from_outcome(outcome),
                    receipt: is_settled_later.then(|| Receipt::of(outcome)),
                    exposed: self.exposes_decision.then(expose),
                })
            }
        }
    }

    fn on_limiter_error(
        self: &Arc<Self>,
        error: &LimiterError,
        request: &RequestHead<'_>,
    ) -> Admission<S, O> {
        self.report_error(error);
        let refuse = |refusal: Refusal<'_>| {
            Admission::Refused(self.refusals.respond_undecided(refusal, request, &self.headers))
        };
        match (self.error_action, error) {
            // The store still counts: passing the request on would exceed limits whenever there are many requests.
            (_, LimiterError::Store(error)) if error.kind() == StoreErrorKind::Overloaded => {
                refuse(Refusal::overloaded())
            }
            // Otherwise a client could bypass its limits by matching more rules than a plan can hold.
            (ErrorAction::Refuse, _) | (_, LimiterError::Plan(_)) => refuse(Refusal::undecided()),
            (ErrorAction::Allow, _) => {
                let (settings, no_headers) = (Arc::clone(self), HeaderValues::default());
                let in_flight = InFlight::new(settings, no_headers, None, PendingCharge::None);
                Admission::Admitted(in_flight, None)
            }
        }
    }
}

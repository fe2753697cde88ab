//! An admitted request, from admission to the end of its response body.

use std::sync::Arc;

use http::{Response, StatusCode, response};
use http_body::Body;
use tollgate::{Observer, Store};

use super::body::{BodyEnd, ResponseBody};
use super::cost::{AdmissionCharge, ChargeTiming};
use super::deferred_charge::{DeferredCharge, UnpaidCharge};
use super::headers::HeaderValues;
use super::settings::Settings;
use super::slot_guard::SlotGuard;
use crate::background::{RunToCompletion, run_in_background};

/// An admitted request that the service is processing.
pub(super) struct InFlight<S: Store + 'static, O: Observer + 'static> {
    settings: Arc<Settings<S, O>>,
    header_values: HeaderValues,
    slots: Option<SlotGuard>,
    pending: PendingCharge<S, O>,
}

/// What remains to be settled when the response is known.
pub(super) enum PendingCharge<S: Store + 'static, O: Observer + 'static> {
    None,
    /// Already taken; refunded if the response does not count.
    Refundable(Box<DeferredCharge<S, O>>),
    /// Nothing taken yet.
    Unpaid(UnpaidCharge<S, O>),
}

/// A refund or debit that must finish before the response is sent. It continues if the client disconnects, and returns
/// the header values after it.
pub(super) type Settlement = RunToCompletion<Option<HeaderValues>>;

impl<S: Store + 'static, O: Observer + 'static> PendingCharge<S, O> {
    pub(super) const fn new(
        charge: Box<DeferredCharge<S, O>>,
        at_admission: AdmissionCharge,
    ) -> Self {
        match at_admission {
            AdmissionCharge::Take(_) => Self::Refundable(charge),
            AdmissionCharge::Admit => Self::Unpaid(UnpaidCharge::new(charge)),
        }
    }
}

impl<S: Store + 'static, O: Observer + 'static> InFlight<S, O> {
    pub(super) const fn new(
        settings: Arc<Settings<S, O>>,
        header_values: HeaderValues,
        slots: Option<SlotGuard>,
        pending: PendingCharge<S, O>,
    ) -> Self {
        Self { settings, header_values, slots, pending }
    }

    /// Handles the response head. Returns how to finish the response, and the settlement that must complete first.
    pub(super) fn on_response<B: Body>(
        self,
        head: &response::Parts,
        body: &B,
    ) -> (FinishResponse<S, O>, Option<Settlement>) {
        let Self { settings, header_values, slots, pending } = self;
        let (settlement, unpaid) = match pending {
            PendingCharge::None => (None, None),
            PendingCharge::Refundable(_) if settings.cost.counts(head) => (None, None),
            PendingCharge::Refundable(charge) => {
                (Some(RunToCompletion::new(charge.refund())), None)
            }
            PendingCharge::Unpaid(unpaid) => {
                match (settings.response_cost(head, body), unpaid.into_charge()) {
                    (ResponseCost::Known(cost), Some(charge)) => {
                        (Some(RunToCompletion::new(charge.debit(cost))), None)
                    }
                    (_, charge) => (None, charge),
                }
            }
        };
        (FinishResponse { settings, header_values, slots, unpaid }, settlement)
    }

    /// Handles an error of the service, which counts as a response with status 500.
    pub(super) fn on_service_error(self) {
        let (mut head, ()) = Response::new(()).into_parts();
        head.status = StatusCode::INTERNAL_SERVER_ERROR;
        if self.settings.cost.counts(&head) {
            // Dropping an unpaid charge debits it.
            return;
        }
        match self.pending {
            PendingCharge::None => {}
            PendingCharge::Refundable(charge) => {
                run_in_background(async move { drop(charge.refund().await) });
            }
            PendingCharge::Unpaid(unpaid) => drop(unpaid.into_charge()),
        }
    }
}

/// What to add to a response before it is sent.
pub(super) struct FinishResponse<S: Store + 'static, O: Observer + 'static> {
    settings: Arc<Settings<S, O>>,
    header_values: HeaderValues,
    slots: Option<SlotGuard>,
    unpaid: Option<Box<DeferredCharge<S, O>>>,
}

impl<S: Store + 'static, O: Observer + 'static> FinishResponse<S, O> {
    /// Adds the headers (those after a settlement if there was one) and the action for the end of the body.
    pub(super) fn respond<B>(
        self,
        mut head: response::Parts,
        body: B,
        settled: Option<HeaderValues>,
    ) -> Response<ResponseBody<B>> {
        let Self { settings, header_values, slots, unpaid } = self;
        settings.headers.write(&mut head.headers, settled.unwrap_or(header_values));
        let body_end = settings.body_end(slots, unpaid);
        Response::from_parts(head, ResponseBody::from_service(body, body_end))
    }
}

/// The cost of a response.
enum ResponseCost {
    Known(u64),
    KnownAtBodyEnd,
}

impl<S: Store + 'static, O: Observer + 'static> Settings<S, O> {
    fn response_cost<B: Body>(&self, head: &response::Parts, body: &B) -> ResponseCost {
        let cost = match &self.cost.timing {
            ChargeTiming::Admission => 0,
            _ if !self.cost.counts(head) => 0,
            ChargeTiming::ResponseHead(cost) => cost(head),
            ChargeTiming::ResponseSize(cost) => match body.size_hint().exact() {
                Some(size) => cost(size),
                None => return ResponseCost::KnownAtBodyEnd,
            },
        };
        ResponseCost::Known(cost)
    }

    fn body_end(
        &self,
        slots: Option<SlotGuard>,
        unpaid: Option<Box<DeferredCharge<S, O>>>,
    ) -> BodyEnd {
        let cost_of_size = match &self.cost.timing {
            ChargeTiming::ResponseSize(cost) => Some(Arc::clone(cost)),
            _ => None,
        };
        match (unpaid, cost_of_size) {
            (Some(charge), Some(cost)) => BodyEnd::new(move |sent_bytes| {
                drop(slots);
                charge.debit_in_background(cost(sent_bytes));
            }),
            _ if slots.is_some() => BodyEnd::new(move |_| drop(slots)),
            _ => BodyEnd::default(),
        }
    }
}

//! A request that was let in, until its response has ended.

use std::sync::Arc;

use http::{Response, StatusCode, response};
use http_body::Body;
use tollgate::{Observer, Store};

use super::body::{AtEnd, ResponseBody};
use super::cost::{Entry, Payment};
use super::deferred_charge::{Bill, Unpaid};
use super::headers::Fields;
use super::settings::Settings;
use super::slot_guard::Held;
use crate::background::{Carried, detach};

/// A request that is being served.
pub(super) struct Pass<S: Store + 'static, O: Observer + 'static> {
    settings: Arc<Settings<S, O>>,
    fields: Fields,
    held: Option<Held>,
    due: Due<S, O>,
}

/// What is left to settle.
pub(super) enum Due<S: Store + 'static, O: Observer + 'static> {
    Nothing,
    /// What was taken is given back if the response does not count.
    Receipt(Box<Bill<S, O>>),
    /// Nothing was taken yet.
    Unpaid(Unpaid<S, O>),
}

/// Something is given back or paid; it comes to what is left then. It goes on though the client be gone.
pub(super) type Settlement = Carried<Option<Fields>>;

impl<S: Store + 'static, O: Observer + 'static> Due<S, O> {
    pub(super) const fn new(bill: Box<Bill<S, O>>, entry: Entry) -> Self {
        match entry {
            Entry::Take(_) => Self::Receipt(bill),
            Entry::Look => Self::Unpaid(Unpaid::new(bill)),
        }
    }
}

impl<S: Store + 'static, O: Observer + 'static> Pass<S, O> {
    pub(super) const fn new(
        settings: Arc<Settings<S, O>>,
        fields: Fields,
        held: Option<Held>,
        due: Due<S, O>,
    ) -> Self {
        Self { settings, fields, held, due }
    }

    /// The response has begun: what is to be settled before it goes out, and how it goes out then.
    pub(super) fn answered<B: Body>(
        self,
        head: &response::Parts,
        body: &B,
    ) -> (Ending<S, O>, Option<Settlement>) {
        let Self { settings, fields, held, due } = self;
        let (settlement, rest) = match due {
            Due::Nothing => (None, None),
            Due::Receipt(_) if settings.charging.counts(head) => (None, None),
            Due::Receipt(bill) => (Some(Carried::new(bill.refund_receipt())), None),
            Due::Unpaid(unpaid) => match (settings.price(head, body), unpaid.into_bill()) {
                (Price::Known(cost), Some(bill)) => (Some(Carried::new(bill.pay(cost))), None),
                (_, bill) => (None, bill),
            },
        };
        (Ending { settings, fields, held, rest }, settlement)
    }

    /// The service failed: there is no response to count.
    pub(super) fn failed(self) {
        let (mut head, ()) = Response::new(()).into_parts();
        head.status = StatusCode::INTERNAL_SERVER_ERROR;
        if self.settings.charging.counts(&head) {
            // What is not yet paid is paid by being dropped.
            return;
        }
        match self.due {
            Due::Nothing => {}
            Due::Receipt(bill) => detach(async move { drop(bill.refund_receipt().await) }),
            Due::Unpaid(unpaid) => drop(unpaid.into_bill()),
        }
    }
}

/// How a response goes out.
pub(super) struct Ending<S: Store + 'static, O: Observer + 'static> {
    settings: Arc<Settings<S, O>>,
    fields: Fields,
    held: Option<Held>,
    rest: Option<Box<Bill<S, O>>>,
}

impl<S: Store + 'static, O: Observer + 'static> Ending<S, O> {
    /// With what is left, and with what happens when its body ends.
    pub(super) fn respond<B>(
        self,
        mut head: response::Parts,
        body: B,
        settled: Option<Fields>,
    ) -> Response<ResponseBody<B>> {
        let Self { settings, fields, held, rest } = self;
        settings.telling.tell(&mut head.headers, settled.unwrap_or(fields));
        let at_end = settings.at_end(held, rest);
        Response::from_parts(head, ResponseBody::of_service(body, at_end))
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

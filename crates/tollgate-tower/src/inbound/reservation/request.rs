//! A request with a reservation, from admission to the end of its response body.

use std::io::IoSlice;

use bytes::Buf;
use http::{Response, StatusCode, response};
use http_body::Body;
use tollgate::{Observer, Store};

use super::final_amounts::{ResponseOutcome, costs_of_usage};
use super::open::OpenReservation;
use super::settings::AmountSource;
use crate::inbound::body::{BodyAction, BodyEnd, ResponseBody};
use crate::inbound::body_mode::BodyMode;
use crate::inbound::cost::is_failure;
use crate::inbound::headers::HeaderValues;
use crate::inbound::held_slots::{Upgrade, refused_upgrade};
use crate::usage::{Usage, UsageReader};

/// The number of parts that a frame is read in. Frames of servers and clients have one.
const MAX_PARTS: usize = 16;

/// A request with a reservation that the service is processing.
pub(in crate::inbound) struct ReservedRequest<S: Store + 'static, O: Observer + 'static> {
    pub(super) header_values: HeaderValues,
    pub(super) open: OpenReservation<S, O>,
    /// The input tokens, for a response that ends before it reports them.
    pub(super) input_tokens: Option<u64>,
    /// The upgrade that would outlast the slots of the reservation.
    pub(super) upgrade: Upgrade,
}

impl<S: Store + 'static, O: Observer + 'static> ReservedRequest<S, O> {
    pub(in crate::inbound) fn on_service_call(&mut self) {
        self.open.on_service_call();
    }

    /// Adds the headers of the decision, and the settlement at the end of the body.
    pub(in crate::inbound) fn on_response<B: Body, M: BodyMode<B>>(
        self,
        response: Response<B>,
    ) -> Response<M::Body> {
        if self.upgrade.is_accepted_by(&response) {
            let refused = refused_upgrade();
            self.settle_as(refused.status());
            return refused.map(|text| M::from_layer(ResponseBody::from_refusal(text)));
        }
        let Self { mut header_values, open, input_tokens, .. } = self;
        let (mut head, body) = response.into_parts();
        let source = open.settings().reservation.amount_source(&head);
        let outcome = outcome_of(&head);
        header_values.write(&mut head.headers);
        let end = BodyEnd::with_action(SettleAtEnd { open, source, input_tokens, outcome });
        Response::from_parts(head, M::from_layer(ResponseBody::with_end(body, end)))
    }

    /// Settles after an error of the service, which counts as a response with status 500.
    pub(in crate::inbound) fn on_service_error(self) {
        self.settle_as(StatusCode::INTERNAL_SERVER_ERROR);
    }

    /// Settles for a response without a body and with this status.
    fn settle_as(self, status: StatusCode) {
        let (mut head, ()) = Response::new(()).into_parts();
        head.status = status;
        let source = self.open.settings().reservation.amount_source(&head);
        let (open, input_tokens, outcome) = (self.open, self.input_tokens, outcome_of(&head));
        SettleAtEnd { open, source, input_tokens, outcome }.settle();
    }
}

fn outcome_of(head: &response::Parts) -> ResponseOutcome {
    match is_failure(head) {
        true => ResponseOutcome::Failure,
        false => ResponseOutcome::Success,
    }
}

/// Reads the usage of a body, and settles the reservation when the body ends. Until then the slots are held.
struct SettleAtEnd<S: Store + 'static, O: Observer + 'static> {
    open: OpenReservation<S, O>,
    source: AmountSource,
    input_tokens: Option<u64>,
    outcome: ResponseOutcome,
}

impl<S: Store + 'static, O: Observer + 'static> SettleAtEnd<S, O> {
    fn settle(self) {
        let Self { open, source, input_tokens, outcome } = self;
        let known = match source {
            AmountSource::Known(costs) => costs,
            AmountSource::Body(reader) => {
                let usage = reader.map_or(Usage::Unknown, |reader| reader.finish());
                costs_of_usage(open.prices(), usage, (input_tokens, outcome))
            }
        };
        open.settle(known, outcome);
    }
}

impl<S: Store + 'static, O: Observer + 'static> BodyAction for SettleAtEnd<S, O> {
    fn on_data(&mut self, data: &dyn Buf) {
        if let AmountSource::Body(reader) = &mut self.source
            && reader.as_mut().is_some_and(|reader| !read(reader, data))
        {
            *reader = None;
        }
    }

    fn on_end(self: Box<Self>, _: u64) {
        self.settle();
    }
}

/// Reads the data of a frame without consuming it. Returns `false` if not all of it can be read: the usage is then unknown.
fn read(reader: &mut UsageReader, data: &dyn Buf) -> bool {
    let mut parts = [IoSlice::new(&[]); MAX_PARTS];
    let count = data.chunks_vectored(&mut parts);
    let mut length = 0;
    for part in parts.iter().take(count) {
        reader.push(part);
        length += part.len();
    }
    length == data.remaining()
}

#[cfg(test)]
mod tests {
    use bytes::{Buf, Bytes};

    use super::read;
    use crate::usage::{TokenUsage, Usage, UsageReader};

    const JSON: &[u8] = br#"{"usage":{"prompt_tokens":3,"completion_tokens":4}}"#;

    /// Data in two parts, of which only the first can be read without consuming it.
    struct FirstPart(Bytes, usize);

    impl Buf for FirstPart {
        fn remaining(&self) -> usize {
            self.0.len()
        }

        fn chunk(&self) -> &[u8] {
            self.0.get(..self.1).unwrap_or_default()
        }

        fn advance(&mut self, count: usize) {
            self.0.advance(count);
        }
    }

    #[test]
    fn frames_in_parts_are_read_as_a_whole_or_not_at_all() {
        let (head, tail) = JSON.split_at(20);
        let mut reader = UsageReader::json();
        assert!(read(&mut reader, &head.chain(tail)));
        assert_eq!(reader.finish(), Usage::Exact(TokenUsage { input: 3, output: 4 }));
        let json = Bytes::from_static(JSON);
        assert!(!read(&mut UsageReader::json(), &FirstPart(json.clone(), 20)));
        assert!(read(&mut UsageReader::json(), &FirstPart(json, JSON.len())));
    }
}

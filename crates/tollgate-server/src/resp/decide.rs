//! Decision commands: read from their arguments, decided by the service, encoded as replies.

use tollgate::{Outcome, Query, ReserveOutcome, Verb};

use super::commands::Command;
use super::decode::Arguments;
use super::encode::Replies;
use super::error_reply::ErrorReply;
use super::limit_cache::LimitCache;
use super::policy_commands::{encode_decision, read_query, unix_millis};
use super::reservation_commands::{
    ReserveCall, SettleCall, encode_reserved, encode_settled, read_held, read_reserve, read_settle,
};
use super::throttle::{self, Convention, ThrottleCall};
use crate::api::{DecisionSeries, Held, Service, UndeliveredPermit};
use crate::error::{ApiError, ApiErrorKind};
use crate::telemetry::Span;

/// A valid decision command.
#[derive(Debug)]
pub(super) enum DecisionCall<'a> {
    /// Boxed, as the next one, because it is large.
    Throttle(Box<ThrottleCall>),
    ByPolicy(Verb, Box<Query<'a>>),
    Reserve(Box<ReserveCall<'a>>),
    Settle(Box<SettleCall>),
    Release(Held),
    Renew(Held),
}

impl<'a> DecisionCall<'a> {
    /// Reads a decision command; `None` if the command decides nothing.
    pub(super) fn read(
        command: Command,
        arguments: &Arguments<'a>,
        limits: &mut LimitCache,
    ) -> Option<Result<Self, ErrorReply>> {
        let by_policy =
            |verb| read_query(arguments).map(|query| Self::ByPolicy(verb, Box::new(query)));
        let mut throttle = |convention| {
            throttle::read(convention, arguments, limits).map(|call| Self::Throttle(Box::new(call)))
        };
        Some(match command {
            Command::CellThrottle => throttle(Convention::Cell),
            Command::Throttle => throttle(Convention::Crab),
            Command::Check => by_policy(Verb::Take),
            Command::Peek => by_policy(Verb::Peek),
            Command::Refund => by_policy(Verb::Refund),
            Command::Release => read_held(arguments).map(Self::Release),
            Command::Renew => read_held(arguments).map(Self::Renew),
            Command::Reserve => read_reserve(arguments).map(|call| Self::Reserve(Box::new(call))),
            Command::Settle => read_settle(arguments).map(|call| Self::Settle(Box::new(call))),
            _ => return None,
        })
    }

    /// Returns the verb; `None` for a call about a permit or a reservation, which is never decided concurrently with others.
    pub(super) const fn verb(&self) -> Option<Verb> {
        match self {
            Self::Throttle(call) => Some(call.verb),
            Self::ByPolicy(verb, _) => Some(*verb),
            Self::Reserve(_) | Self::Settle(_) | Self::Release(_) | Self::Renew(_) => None,
        }
    }

    /// Copies the call, so that it borrows nothing.
    pub(super) fn into_owned(self) -> DecisionCall<'static> {
        match self {
            Self::Throttle(call) => DecisionCall::Throttle(call),
            Self::ByPolicy(verb, query) => {
                DecisionCall::ByPolicy(verb, Box::new(query.into_owned()))
            }
            Self::Reserve(call) => DecisionCall::Reserve(Box::new(call.into_owned())),
            Self::Settle(call) => DecisionCall::Settle(call),
            Self::Release(held) => DecisionCall::Release(held),
            Self::Renew(held) => DecisionCall::Renew(held),
        }
    }

    /// Decides and appends the reply. Returns the permit that the reply delivers, if any.
    pub(super) async fn run(
        &self,
        service: &Service,
        replies: &mut Replies,
    ) -> Option<UndeliveredPermit> {
        self.try_run(service, replies).await.unwrap_or_else(|error| {
            replies.error(&ErrorReply::from(error));
            None
        })
    }

    async fn try_run(
        &self,
        service: &Service,
        replies: &mut Replies,
    ) -> Result<Option<UndeliveredPermit>, ApiError> {
        match self {
            Self::Throttle(call) => call.run(&mut service.series(), replies).await?,
            Self::ByPolicy(Verb::Take, query) => {
                let (reply, permit) =
                    service.check_undelivered(query, &mut Span::none(), encoded).await?;
                replies.append(reply.as_bytes());
                return Ok(permit);
            }
            Self::ByPolicy(verb, query) => {
                let encode = |outcome: &Outcome<'_, '_>| encode(outcome, replies);
                service.decide(*verb, query, &mut Span::none(), encode).await?;
            }
            Self::Reserve(call) => {
                let (terms, span) = (call.terms.clone(), &mut Span::none());
                let (reply, permit) =
                    service.reserve_undelivered(&call.query, terms, span, reserved).await?;
                replies.append(reply.as_bytes());
                return Ok(permit);
            }
            Self::Settle(call) => match service.settle(&call.token, None, &call.finals).await {
                Ok(settled) => encode_settled(true, settled.is_repeated, replies),
                Err(error) if error.kind() == ApiErrorKind::NotFound => {
                    encode_settled(false, false, replies);
                }
                Err(error) => return Err(error),
            },
            Self::Release(held) => {
                let is_released = service.release_held(held).await?;
                replies.integer(u8::from(is_released));
            }
            Self::Renew(held) => {
                let expires_at = service.renew_held(held).await?;
                replies.integer(expires_at.map_or(-1, unix_millis));
            }
        }
        Ok(None)
    }
}

impl ThrottleCall {
    /// Decides and appends the reply.
    pub(super) async fn run(
        &self,
        series: &mut DecisionSeries<'_>,
        replies: &mut Replies,
    ) -> Result<(), ApiError> {
        let encode = |outcome: &Outcome<'_, '_>| match store_loss(outcome) {
            Some(error) => replies.error(&error),
            None => self.format.encode(outcome.decision, replies),
        };
        series.decide(self.verb, &self.query, &mut Span::none(), encode).await
    }
}

fn encoded(outcome: &Outcome<'_, '_>) -> Replies {
    let mut replies = Replies::default();
    encode(outcome, &mut replies);
    replies
}

fn reserved(reserved: &ReserveOutcome<'_, '_>) -> Replies {
    let mut replies = Replies::default();
    match store_loss(reserved.outcome).filter(|_| reserved.record.is_none()) {
        Some(error) => replies.error(&error),
        None => encode_reserved(reserved, &mut replies),
    }
    replies
}

fn encode(outcome: &Outcome<'_, '_>, replies: &mut Replies) {
    match store_loss(outcome) {
        Some(error) => replies.error(&error),
        None => encode_decision(outcome, replies),
    }
}

/// Returns the error of a request that is refused because the store is lost.
fn store_loss(outcome: &Outcome<'_, '_>) -> Option<ErrorReply> {
    ApiError::of_store_loss(outcome).map(ErrorReply::from)
}

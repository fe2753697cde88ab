//! Limits that come with a request.

use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use tollgate::algorithm::CalendarUnit;
use tollgate::{Limit, OverrideLimit, Quota, QuotaError, QuotaErrorKind};

use super::scalar::{Text, Whole, present};
use crate::error::ApiError;

/// How long a slot of a concurrency limit lasts when the request does not say.
const DEFAULT_TTL: Duration = Duration::from_secs(60);

/// One limit of a body.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitBody<'a> {
    #[serde(default, borrow, deserialize_with = "present")]
    name: Option<Text<'a>>,
    #[serde(default, deserialize_with = "present")]
    algorithm: Option<Algorithm>,
    limit: Whole,
    #[serde(default, deserialize_with = "present")]
    window_ms: Option<Whole>,
    #[serde(default, deserialize_with = "present")]
    burst: Option<Whole>,
    #[serde(default, deserialize_with = "present")]
    align: Option<Align>,
    #[serde(default, borrow, deserialize_with = "present")]
    tz: Option<Text<'a>>,
    #[serde(default, deserialize_with = "present")]
    ttl_ms: Option<Whole>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Algorithm {
    #[default]
    TokenBucket,
    SlidingWindow,
    SlidingCounter,
    FixedWindow,
    Concurrency,
}

impl From<Algorithm> for tollgate::Algorithm {
    fn from(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::TokenBucket => Self::TokenBucket,
            Algorithm::SlidingWindow => Self::SlidingWindow,
            Algorithm::SlidingCounter => Self::SlidingCounter,
            Algorithm::FixedWindow => Self::FixedWindow,
            Algorithm::Concurrency => Self::Concurrency,
        }
    }
}

/// A unit of the calendar, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Align(CalendarUnit);

impl<'de> Deserialize<'de> for Align {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Text::deserialize(deserializer)?;
        let unit = CalendarUnit::ALL.into_iter().find(|unit| unit.as_str() == name.as_str());
        unit.map(Self).ok_or_else(|| {
            let names = CalendarUnit::ALL.map(CalendarUnit::as_str).join(", ");
            D::Error::custom(format!("must be one of {names}"))
        })
    }
}

impl LimitBody<'_> {
    /// The limit, or which field is wrong.
    pub(crate) fn build(&self) -> Result<Limit, ApiError> {
        self.fits_algorithm()?;
        let limit = self.unnamed().map_err(|error| self.blame(&error))?;
        match &self.name {
            None => Ok(limit),
            Some(name) => limit.named(name.as_str()).map_err(|error| self.blame(&error)),
        }
    }

    /// One limit of an override: what it does not say it takes from the rule that it is put into.
    pub(crate) fn own(&self) -> Result<OverrideLimit, ApiError> {
        let given = [
            ("align", self.align.is_some()),
            ("tz", self.tz.is_some()),
            ("ttl_ms", self.ttl_ms.is_some()),
        ];
        if let Some((field, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
            let detail = "is not for overrides: they take it from the rule's limit";
            return Err(ApiError::invalid(detail).at(field));
        }
        self.fits_override()?;
        let own = match self.window_ms {
            Some(window) => OverrideLimit::new(self.limit.0, Duration::from_millis(window.0)),
            None => OverrideLimit::slots(self.limit.0),
        };
        let own = match (self.algorithm, self.burst) {
            (Some(algorithm), None) => own.with_algorithm(algorithm.into()),
            (Some(algorithm), Some(burst)) => own.with_algorithm(algorithm.into()).burst(burst.0),
            (None, Some(burst)) => own.burst(burst.0),
            (None, None) => own,
        };
        match &self.name {
            None => Ok(own),
            Some(name) => {
                // Only what a limit can be called.
                let named = Limit::block().named(name.as_str());
                named.map_err(|error| self.blame(&error))?;
                Ok(own.named(name.as_str()))
            }
        }
    }

    fn fits_override(&self) -> Result<(), ApiError> {
        if self.algorithm.is_some() {
            self.fits_algorithm()?;
        }
        if self.algorithm() == Algorithm::Concurrency {
            return Ok(());
        }
        if self.window_ms.is_none() {
            return Err(ApiError::invalid("is missing").at("window_ms"));
        }
        let count = self.limit.0.max(1);
        let quota = self.quota_of(count);
        quota.map(|_| ()).map_err(|error| self.blame(&error))
    }

    fn algorithm(&self) -> Algorithm {
        self.algorithm.unwrap_or_default()
    }

    fn unnamed(&self) -> Result<Limit, QuotaError> {
        let count = self.limit.0;
        if count == 0 {
            return Ok(Limit::block());
        }
        if let Some(align) = self.align {
            let zone = self.tz.as_ref().map_or("UTC", Text::as_str);
            return Limit::calendar_window(count, align.0, zone);
        }
        match self.algorithm() {
            Algorithm::TokenBucket => Limit::token_bucket(self.quota()?),
            Algorithm::SlidingWindow => Limit::sliding_window(self.quota()?),
            Algorithm::SlidingCounter => Limit::sliding_counter(self.quota()?),
            Algorithm::FixedWindow => Limit::fixed_window(self.quota()?),
            Algorithm::Concurrency => {
                let ttl = self.ttl_ms.map_or(DEFAULT_TTL, |ttl| Duration::from_millis(ttl.0));
                Limit::concurrency(count, ttl)
            }
        }
    }

    fn quota(&self) -> Result<Quota, QuotaError> {
        self.quota_of(self.limit.0)
    }

    fn quota_of(&self, count: u64) -> Result<Quota, QuotaError> {
        let window = self.window_ms.map_or(0, |window| window.0);
        let quota = Quota::try_new(count, Duration::from_millis(window))?;
        match self.burst {
            Some(burst) => quota.try_burst(burst.0),
            None => Ok(quota),
        }
    }

    /// Refuses fields that mean nothing to the algorithm, and misses those it needs.
    fn fits_algorithm(&self) -> Result<(), ApiError> {
        let is_slots = self.algorithm() == Algorithm::Concurrency;
        let wrong = |field: &str, detail: &str| Err(ApiError::invalid(detail).at(field));
        if self.burst.is_some() && self.algorithm() != Algorithm::TokenBucket {
            return wrong("burst", "is for token_bucket only");
        }
        if self.align.is_some() && self.algorithm() != Algorithm::FixedWindow {
            return wrong("align", "is for fixed_window only");
        }
        if self.tz.is_some() && self.align.is_none() {
            return wrong("tz", "needs align: other windows have no time zone");
        }
        if self.ttl_ms.is_some() && !is_slots {
            return wrong("ttl_ms", "is for concurrency only; others have window_ms");
        }
        match (self.window_ms, self.align) {
            (Some(_), _) if is_slots => {
                wrong("window_ms", "is not for concurrency, which has ttl_ms")
            }
            (Some(window), Some(align))
                if align.0.length() != Some(Duration::from_millis(window.0)) =>
            {
                wrong("window_ms", "differs from align, which gives the window; leave it out")
            }
            (None, None) if !is_slots && self.limit.0 > 0 => wrong("window_ms", "is missing"),
            _ => Ok(()),
        }
    }

    /// The field that an error of the library is about.
    fn blame(&self, error: &QuotaError) -> ApiError {
        let is_slots = self.algorithm() == Algorithm::Concurrency;
        let field = match error.kind() {
            QuotaErrorKind::Count => "limit",
            QuotaErrorKind::Period if is_slots => "ttl_ms",
            QuotaErrorKind::Period => "window_ms",
            QuotaErrorKind::Burst => "burst",
            QuotaErrorKind::Name => "name",
            QuotaErrorKind::TimeZone => "tz",
            _ => return ApiError::invalid(error.to_string()),
        };
        ApiError::invalid(error.to_string()).at(field)
    }
}

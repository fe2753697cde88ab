//! Inline limits and the limits of overrides.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use tollgate::algorithm::CalendarUnit;
use tollgate::{Limit, OverrideLimit, Quota, QuotaError, QuotaErrorKind};

use super::scalar::{Integer, Text, present};
use crate::error::ApiError;

/// Lifetime of a concurrency slot if the request has no `ttl_ms`.
const DEFAULT_TTL: Duration = Duration::from_secs(60);

/// One limit of a request body.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitBody<'a> {
    #[serde(default, borrow, deserialize_with = "present")]
    name: Option<Text<'a>>,
    #[serde(default, deserialize_with = "present")]
    algorithm: Option<Algorithm>,
    limit: Integer,
    #[serde(default, deserialize_with = "present")]
    window_ms: Option<Integer>,
    #[serde(default, deserialize_with = "present")]
    burst: Option<Integer>,
    #[serde(default, deserialize_with = "present")]
    align: Option<Align>,
    #[serde(default, borrow, deserialize_with = "present")]
    tz: Option<Text<'a>>,
    #[serde(default, deserialize_with = "present")]
    ttl_ms: Option<Integer>,
}

/// An entry of `limits`: a rate such as `"10/min"`, or an object.
#[derive(Debug)]
pub(crate) enum LimitEntry<'a> {
    /// A token bucket.
    Rate(Text<'a>),
    Fields(LimitBody<'a>),
}

impl LimitEntry<'_> {
    /// Returns the inline limit, or an error that names the invalid field.
    pub(crate) fn build(&self) -> Result<Limit, ApiError> {
        match self {
            Self::Rate(rate) => Limit::from_rate(rate.as_str())
                .map_err(|error| ApiError::invalid(error.to_string())),
            Self::Fields(body) => body.build(),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for LimitEntry<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntryVisitor<'a>(PhantomData<&'a str>);

        impl<'de: 'a, 'a> Visitor<'de> for EntryVisitor<'a> {
            type Value = LimitEntry<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object or a rate such as \"10/min\"")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(LimitEntry::Rate(Text(Cow::Borrowed(text))))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(LimitEntry::Rate(Text(Cow::Owned(text.to_owned()))))
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Self::Value, M::Error> {
                LimitBody::deserialize(MapAccessDeserializer::new(map)).map(LimitEntry::Fields)
            }
        }

        deserializer.deserialize_any(EntryVisitor(PhantomData))
    }
}

/// The short form of one inline limit: fields next to `key` instead of a list of `limits`.
#[derive(Debug, Default)]
pub(crate) struct ShortLimit<'a> {
    pub(crate) limit: Option<Integer>,
    pub(crate) window_ms: Option<Integer>,
    pub(crate) algorithm: Option<Algorithm>,
    pub(crate) burst: Option<Integer>,
    pub(crate) name: Option<Text<'a>>,
}

impl ShortLimit<'_> {
    /// Returns the inline limit; `None` without any of its fields.
    pub(crate) fn build(self) -> Result<Option<Limit>, ApiError> {
        let Self { limit, window_ms, algorithm, burst, name } = self;
        let Some(limit) = limit else {
            let fields = [
                ("window_ms", window_ms.is_some()),
                ("algorithm", algorithm.is_some()),
                ("burst", burst.is_some()),
                ("name", name.is_some()),
            ];
            return match fields.into_iter().find(|(_, is_present)| *is_present) {
                Some((field, _)) => {
                    Err(ApiError::invalid("requires `limit`, and cannot be combined with `limits`")
                        .at(field))
                }
                None => Ok(None),
            };
        };
        if algorithm == Some(Algorithm::Concurrency) {
            let detail = "concurrency is not supported in the short form; use `limits`";
            return Err(ApiError::invalid(detail).at("algorithm"));
        }
        if window_ms.is_none() {
            return Err(ApiError::invalid("is required with `limit`").at("window_ms"));
        }
        let (align, tz, ttl_ms) = (None, None, None);
        let body = LimitBody { name, algorithm, limit, window_ms, burst, align, tz, ttl_ms };
        body.build().map(Some)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Algorithm {
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

/// A calendar unit by name.
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
    /// Returns the inline limit, or an error that names the invalid field.
    pub(crate) fn build(&self) -> Result<Limit, ApiError> {
        self.ensure_fields_fit()?;
        let limit = self.unnamed().map_err(|error| self.quota_error(&error))?;
        match &self.name {
            None => Ok(limit),
            Some(name) => limit.named(name.as_str()).map_err(|error| self.quota_error(&error)),
        }
    }

    /// Returns the limit of an override. Fields that it omits come from the rule's limit.
    pub(crate) fn to_override(&self) -> Result<OverrideLimit, ApiError> {
        let unsupported = [
            ("align", self.align.is_some()),
            ("tz", self.tz.is_some()),
            ("ttl_ms", self.ttl_ms.is_some()),
        ];
        if let Some((field, _)) = unsupported.into_iter().find(|(_, is_present)| *is_present) {
            let detail = "is not supported in overrides; the rule's limit defines it";
            return Err(ApiError::invalid(detail).at(field));
        }
        self.ensure_override_valid()?;
        let limit = match self.window_ms {
            Some(window) => OverrideLimit::new(self.limit.0, Duration::from_millis(window.0)),
            None => OverrideLimit::slots(self.limit.0),
        };
        let limit = match (self.algorithm, self.burst) {
            (Some(algorithm), None) => limit.with_algorithm(algorithm.into()),
            (Some(algorithm), Some(burst)) => limit.with_algorithm(algorithm.into()).burst(burst.0),
            (None, Some(burst)) => limit.burst(burst.0),
            (None, None) => limit,
        };
        match &self.name {
            None => Ok(limit),
            Some(name) => {
                // Validates the name only.
                let named = Limit::block().named(name.as_str());
                named.map_err(|error| self.quota_error(&error))?;
                Ok(limit.named(name.as_str()))
            }
        }
    }

    fn ensure_override_valid(&self) -> Result<(), ApiError> {
        if self.algorithm.is_some() {
            self.ensure_fields_fit()?;
        }
        if self.algorithm() == Algorithm::Concurrency {
            return Ok(());
        }
        if self.window_ms.is_none() {
            return Err(ApiError::invalid("is required").at("window_ms"));
        }
        let count = self.limit.0.max(1);
        let quota = self.quota_of(count);
        quota.map(|_| ()).map_err(|error| self.quota_error(&error))
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

    /// Rejects fields that the algorithm does not use, and requires those that it needs.
    fn ensure_fields_fit(&self) -> Result<(), ApiError> {
        let is_concurrency = self.algorithm() == Algorithm::Concurrency;
        let invalid = |field: &str, detail: &str| Err(ApiError::invalid(detail).at(field));
        if self.burst.is_some() && self.algorithm() != Algorithm::TokenBucket {
            return invalid("burst", "is supported by token_bucket only");
        }
        if self.align.is_some() && self.algorithm() != Algorithm::FixedWindow {
            return invalid("align", "is supported by fixed_window only");
        }
        if self.tz.is_some() && self.align.is_none() {
            return invalid("tz", "requires `align`");
        }
        if self.ttl_ms.is_some() && !is_concurrency {
            return invalid("ttl_ms", "is supported by concurrency only; use `window_ms`");
        }
        match (self.window_ms, self.align) {
            (Some(_), _) if is_concurrency => {
                invalid("window_ms", "is not supported by concurrency; use `ttl_ms`")
            }
            (Some(window), Some(align))
                if align.0.length() != Some(Duration::from_millis(window.0)) =>
            {
                invalid("window_ms", "contradicts `align`, which defines the window; omit it")
            }
            (None, None) if !is_concurrency && self.limit.0 > 0 => {
                invalid("window_ms", "is required")
            }
            _ => Ok(()),
        }
    }

    /// Converts an error of the library into one that names the field.
    fn quota_error(&self, error: &QuotaError) -> ApiError {
        let is_concurrency = self.algorithm() == Algorithm::Concurrency;
        let field = match error.kind() {
            QuotaErrorKind::Count => "limit",
            QuotaErrorKind::Period if is_concurrency => "ttl_ms",
            QuotaErrorKind::Period => "window_ms",
            QuotaErrorKind::Burst => "burst",
            QuotaErrorKind::Name => "name",
            QuotaErrorKind::TimeZone => "tz",
            _ => return ApiError::invalid(error.to_string()),
        };
        ApiError::invalid(error.to_string()).at(field)
    }
}

//! Inline limits and the limits of overrides.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use tollgate::algorithm::CalendarUnit;
use tollgate::{Limit, LimitError, LimitField, LimitSpec, OverrideLimit, Unit};

use super::scalar::{Integer, Text, present};
use crate::error::ApiError;
#[cfg(test)]
use crate::reference_tests::names;

/// Maximum number of slots of an inline concurrency limit. Redis stores each slot, and searches them for a permit: a
/// caller must not be able to make that slow for others.
const MAX_INLINE_SLOTS: u64 = 1000;

/// One limit of a request body.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "InlineLimit"))]
pub(crate) struct LimitBody<'a> {
    /// The name of the limit. Default: its window, such as 60s.
    #[serde(default, borrow, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "names::LimitName"))]
    name: Option<Text<'a>>,
    /// The unit that the limit counts: requests, or another unit of the costs of a request, such as tokens. Not supported
    /// by concurrency.
    #[serde(default, borrow, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "names::LimitName", extend("default" = "requests")))]
    unit: Option<Text<'a>>,
    /// The algorithm.
    #[serde(default, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "names::RequestedAlgorithm", extend("default" = "token_bucket")))]
    algorithm: Option<Algorithm>,
    /// The count per window, or the number of slots of a concurrency limit, up to 1000 in a request to decide; 0 refuses
    /// everything.
    #[cfg_attr(test, schemars(with = "names::Count"))]
    limit: Integer,
    /// The window in milliseconds, up to 100 years. Not supported by concurrency.
    #[serde(default, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "names::WindowMs"))]
    window_ms: Option<Integer>,
    /// The capacity of a token bucket. Default: the limit.
    #[serde(default, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "names::PositiveCount"))]
    burst: Option<Integer>,
    /// Aligns the window to the calendar; `fixed_window` only.
    #[serde(default, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "names::Align"))]
    align: Option<Align>,
    /// The time zone of `align`, such as Europe/Zurich. Default: UTC.
    #[serde(default, borrow, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "String"))]
    tz: Option<Text<'a>>,
    /// The lifetime of a slot in milliseconds unless it is renewed; concurrency only. Default: 60000.
    #[serde(default, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "names::PositiveWindowMs"))]
    ttl_ms: Option<Integer>,
}

/// An entry of `limits`: a rate such as `"10/min"`, or an object.
#[derive(Debug)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(untagged, inline))]
pub(crate) enum LimitEntry<'a> {
    /// A token bucket.
    Rate(#[cfg_attr(test, schemars(with = "names::Rate"))] Text<'a>),
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
    pub(crate) unit: Option<Text<'a>>,
}

impl ShortLimit<'_> {
    /// Returns the inline limit; `None` without any of its fields.
    pub(crate) fn build(self) -> Result<Option<Limit>, ApiError> {
        let Self { limit, window_ms, algorithm, burst, name, unit } = self;
        let Some(limit) = limit else {
            let fields = [
                ("window_ms", window_ms.is_some()),
                ("algorithm", algorithm.is_some()),
                ("burst", burst.is_some()),
                ("name", name.is_some()),
                ("unit", unit.is_some()),
            ];
            return match fields.into_iter().find(|(_, is_present)| *is_present) {
                Some((field, _)) => {
                    Err(ApiError::invalid("requires `limit`, and cannot be combined with `limits`")
                        .at(field))
                }
                None => Ok(None),
            };
        };
        if algorithm.is_some_and(|algorithm| algorithm.0.holds_slots()) {
            let detail = "concurrency is not supported in the short form; use `limits`";
            return Err(ApiError::invalid(detail).at("algorithm"));
        }
        if window_ms.is_none() {
            return Err(ApiError::invalid("is required with `limit`").at("window_ms"));
        }
        let (align, tz, ttl_ms) = (None, None, None);
        let body = LimitBody { name, unit, algorithm, limit, window_ms, burst, align, tz, ttl_ms };
        body.build().map(Some)
    }
}

/// An algorithm by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Algorithm(tollgate::Algorithm);

impl<'de> Deserialize<'de> for Algorithm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Text::deserialize(deserializer)?;
        let algorithm = tollgate::Algorithm::from_name(name.as_str()).map(Self);
        let names = tollgate::Algorithm::NAMES;
        algorithm.ok_or_else(|| D::Error::unknown_variant(name.as_str(), names))
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
    fn spec(&self) -> Result<LimitSpec, ApiError> {
        let millis = |number: Option<Integer>| number.map(|number| Duration::from_millis(number.0));
        let text = |text: &Option<Text<'_>>| text.as_ref().map(|text| text.as_str().to_owned());
        let unit = self.unit.as_ref().map(|unit| Unit::new(unit.as_str())).transpose();
        Ok(LimitSpec {
            algorithm: self.algorithm.map(|algorithm| algorithm.0),
            count: Some(self.limit.0),
            window: millis(self.window_ms),
            burst: self.burst.map(|burst| burst.0),
            align: self.align.map(|align| align.0),
            tz: text(&self.tz),
            ttl: millis(self.ttl_ms),
            unit: unit.map_err(|error| ApiError::invalid(error.to_string()).at("unit"))?,
            name: text(&self.name),
        })
    }

    /// Returns the inline limit, or an error that names the invalid field.
    pub(crate) fn build(&self) -> Result<Limit, ApiError> {
        let spec = self.spec()?;
        let algorithm = spec.algorithm.unwrap_or(tollgate::Algorithm::TokenBucket);
        if algorithm.holds_slots() && self.limit.0 > MAX_INLINE_SLOTS {
            let detail = format!(
                "an inline concurrency limit has at most {MAX_INLINE_SLOTS} slots, not {}; \
                 use a rule of the policy for more",
                self.limit.0
            );
            return Err(ApiError::invalid(detail).at(field_name(LimitField::Count)));
        }
        let spec = LimitSpec { algorithm: Some(algorithm), ..spec };
        spec.build().map_err(|error| limit_error(&error))
    }

    /// Returns the limit of an override. Fields that it omits come from the rule's limit.
    pub(crate) fn to_override(&self) -> Result<OverrideLimit, ApiError> {
        OverrideLimit::from_spec(&self.spec()?).map_err(|error| limit_error(&error))
    }
}

/// Converts an error of the library into one that names the field of the body.
fn limit_error(error: &LimitError) -> ApiError {
    let mut detail = error.detail();
    if let Some(other) = error.instead() {
        detail += &format!("; use `{}`", field_name(other));
    }
    match error.field() {
        Some(field) => ApiError::invalid(detail).at(field_name(field)),
        None => ApiError::invalid(detail),
    }
}

/// Returns the name of a field in request bodies.
const fn field_name(field: LimitField) -> &'static str {
    match field {
        LimitField::Count => "limit",
        LimitField::Window => "window_ms",
        LimitField::Ttl => "ttl_ms",
        LimitField::Burst
        | LimitField::Align
        | LimitField::Tz
        | LimitField::Unit
        | LimitField::Name => field.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    fn inline(body: &str) -> Result<Limit, ApiError> {
        let entry: LimitEntry<'_> =
            serde_json::from_str(body).map_err(|error| ApiError::invalid(error.to_string()))?;
        entry.build()
    }

    #[test]
    fn inline_limits_and_overrides_can_have_every_algorithm() {
        for name in tollgate::Algorithm::NAMES {
            let algorithm = tollgate::Algorithm::from_name(name).unwrap();
            let has_window = algorithm.accepts(LimitField::Window);
            let window = if has_window { r#","window_ms":60000"# } else { "" };
            let body = format!(r#"{{"limit":9,"algorithm":"{name}"{window}}}"#);
            assert_eq!(inline(&body).unwrap().algorithm(), algorithm, "{body}");
            let body: LimitBody<'_> = serde_json::from_str(&body).unwrap();
            assert_eq!(body.to_override().unwrap().algorithm, Some(algorithm), "{name}");
        }
        assert!(inline(r#"{"limit":9,"algorithm":"block"}"#).is_err());
    }

    #[test]
    fn errors_name_the_field_and_the_field_to_use_instead() {
        for (body, field, detail) in [
            (r#"{"limit":9}"#, "window_ms", "is required"),
            (
                r#"{"limit":9,"window_ms":1,"ttl_ms":1}"#,
                "ttl_ms",
                "is supported by concurrency only; use `window_ms`",
            ),
            (
                r#"{"limit":9,"window_ms":1,"algorithm":"concurrency"}"#,
                "window_ms",
                "is not supported by concurrency; use `ttl_ms`",
            ),
            (
                r#"{"limit":9,"window_ms":1,"align":"day"}"#,
                "align",
                "is supported by fixed_window only",
            ),
            (r#"{"limit":9,"window_ms":1,"tz":"UTC"}"#, "tz", "requires `align`"),
            (
                r#"{"limit":9,"window_ms":1,"algorithm":"fixed_window","align":"day"}"#,
                "window_ms",
                "contradicts `align`, which defines the window; omit it",
            ),
            (
                r#"{"limit":9,"window_ms":1,"algorithm":"sliding_window","burst":3}"#,
                "burst",
                "is supported by token_bucket only",
            ),
        ] {
            assert_eq!(inline(body), Err(ApiError::invalid(detail).at(field)), "{body}");
        }
    }

    #[test]
    fn inline_concurrency_limits_are_bounded() {
        let body = |count: u64| format!(r#"{{"limit":{count},"algorithm":"concurrency"}}"#);
        assert!(inline(&body(1000)).is_ok());
        let detail = "an inline concurrency limit has at most 1000 slots, not 1001; use a rule of the policy for more";
        assert_eq!(inline(&body(1001)), Err(ApiError::invalid(detail).at("limit")));
        let large: LimitBody<'_> =
            serde_json::from_str(r#"{"limit":1001,"algorithm":"concurrency"}"#).unwrap();
        assert!(large.to_override().is_ok());
    }

    /// Collects the values of every `enum` that names an algorithm.
    fn algorithm_enums(schema: &Value, found: &mut Vec<BTreeSet<String>>) {
        match schema {
            Value::Object(fields) => {
                let names = fields.get("enum").and_then(Value::as_array).into_iter().flatten();
                let names: BTreeSet<_> =
                    names.filter_map(Value::as_str).map(str::to_owned).collect();
                if names.contains("token_bucket") {
                    found.push(names);
                }
                fields.values().for_each(|field| algorithm_enums(field, found));
            }
            Value::Array(items) => items.iter().for_each(|item| algorithm_enums(item, found)),
            _ => {}
        }
    }

    #[test]
    fn openapi_names_every_algorithm() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/openapi.json");
        let document = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let mut found = Vec::new();
        algorithm_enums(&document, &mut found);
        assert!(!found.is_empty());
        let names = |is_valid: &dyn Fn(&tollgate::Algorithm) -> bool| -> BTreeSet<String> {
            let valid = tollgate::Algorithm::ALL.into_iter().filter(is_valid);
            valid.map(|algorithm| algorithm.to_string()).collect()
        };
        let rates = names(&|algorithm| algorithm.accepts(LimitField::Window));
        let limits = names(&|algorithm| algorithm.accepts(LimitField::Count));
        let all = names(&|_| true);
        for described in found {
            assert!([&rates, &limits, &all].contains(&&described), "{described:?}");
        }
    }
}

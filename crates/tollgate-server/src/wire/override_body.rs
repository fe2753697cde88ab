//! Request bodies into overrides.

use serde::Deserialize;
use tollgate::{Override, OverrideError, OverrideErrorKind, Timestamp};

use super::limit::LimitBody;
use super::parse::parse;
use super::scalar::{Object, Text, present};
use super::time::parse_rfc3339;
use crate::error::ApiError;
#[cfg(test)]
use crate::reference_tests::{names, overrides::OverrideLimits};

/// Body of `PUT /admin/external/clients/{id}/limits`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct OverrideBody<'a> {
    #[serde(borrow)]
    #[cfg_attr(test, schemars(with = "OverrideLimits"))]
    limits: Vec<Object<LimitBody<'a>>>,
    #[serde(default, borrow, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "String", length(max = 1000)))]
    reason: Option<Text<'a>>,
    #[serde(default, borrow, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "String", length(max = 200)))]
    author: Option<Text<'a>>,
    /// The rule that the override changes. Default: every rule keyed by client.
    #[serde(default, borrow)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    rule: Option<Text<'a>>,
    /// The expiry of the override; null for none.
    #[serde(default, borrow)]
    #[cfg_attr(test, schemars(with = "Option<names::Time>"))]
    expires_at: Option<Text<'a>>,
}

/// The override of a request body, with its author and reason.
#[derive(Debug)]
pub(crate) struct ParsedOverride {
    pub(crate) override_: Override,
    pub(crate) author: Option<String>,
    pub(crate) reason: Option<String>,
}

/// Parses and validates a body.
pub(crate) fn read(body: &[u8]) -> Result<ParsedOverride, ApiError> {
    let body: OverrideBody<'_> = parse(body)?;
    let limit = |(index, limit): (usize, &Object<LimitBody<'_>>)| {
        limit.0.to_override().map_err(|error| error.under(&format!("limits[{index}]")))
    };
    let limits = body.limits.iter().enumerate().map(limit).collect::<Result<_, _>>()?;
    let mut override_ = Override::new(limits).map_err(|error| override_error(&error))?;
    if let Some(rule) = &body.rule {
        override_ = override_.for_rule(rule.as_str());
    }
    let expires_at = body.expires_at.as_ref().map(|text| parse_rfc3339(text.as_str()));
    let expires_at =
        expires_at.transpose().map_err(|detail| ApiError::invalid(detail).at("expires_at"))?;
    let text = |text: Option<Text<'_>>| text.map(|text| text.0.into_owned());
    Ok(ParsedOverride {
        override_: override_.valid(Timestamp::EPOCH, expires_at),
        author: text(body.author),
        reason: text(body.reason),
    })
}

/// Converts an error of the library into one that names the field of the body.
pub(crate) fn override_error(error: &OverrideError) -> ApiError {
    let field = match error.kind() {
        OverrideErrorKind::Limit { index } => format!("limits[{index}]"),
        OverrideErrorKind::Rule => "rule".to_owned(),
        _ => "limits".to_owned(),
    };
    ApiError::invalid(error.to_string()).at(field)
}

//! Request bodies into overrides.

use serde::{Deserialize, Serialize};
use tollgate::{Override, OverrideError, OverrideErrorKind, RuleSelection, Timestamp};

use super::limit::LimitBody;
use super::parse::parse;
use super::scalar::{Object, Text, present};
use super::time::parse_rfc3339;
use crate::error::{ApiError, RuleCandidate};
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
    /// The rule that the override changes. Default: the only rule that can apply to the client; if there are several, or
    /// if it is a block, the request is rejected with the candidates.
    #[serde(default, borrow)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    rule: Option<Text<'a>>,
    /// Whether the override changes all rules that can apply to the client, except blocks. One override per rule is
    /// stored.
    #[serde(default)]
    all_rules: bool,
    /// Whether the other limits of the rule are removed for the client. Default: they stay.
    #[serde(default)]
    only: bool,
    /// Whether the client's counters of the rule are also reset, so that a raised limit is usable at once.
    #[serde(default)]
    fresh: bool,
    /// The expiry of the override; null for none.
    #[serde(default, borrow)]
    #[cfg_attr(test, schemars(with = "Option<names::Time>"))]
    expires_at: Option<Text<'a>>,
}

/// The override of a request body, with its author and reason.
#[derive(Debug)]
pub(crate) struct ParsedOverride {
    pub(crate) override_: Override,
    pub(crate) selection: RuleSelection,
    pub(crate) fresh: Freshness,
    pub(crate) author: Option<String>,
    pub(crate) reason: Option<String>,
}

/// Whether setting an override also resets the client's counters of its rule; `true` on the wire if it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "bool", into = "bool")]
pub(crate) enum Freshness {
    #[default]
    KeepUsage,
    ResetUsage,
}

impl Freshness {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(crate) fn is_kept(&self) -> bool {
        *self == Self::KeepUsage
    }
}

impl From<bool> for Freshness {
    fn from(fresh: bool) -> Self {
        if fresh { Self::ResetUsage } else { Self::KeepUsage }
    }
}

impl From<Freshness> for bool {
    fn from(freshness: Freshness) -> Self {
        freshness == Freshness::ResetUsage
    }
}

/// Parses and validates a body.
pub(crate) fn read(body: &[u8]) -> Result<ParsedOverride, ApiError> {
    let body: OverrideBody<'_> = parse(body)?;
    let limit = |(index, limit): (usize, &Object<LimitBody<'_>>)| {
        limit.0.to_override().map_err(|error| error.under(&format!("limits[{index}]")))
    };
    let limits = body.limits.iter().enumerate().map(limit).collect::<Result<_, _>>()?;
    let mut override_ = Override::new(limits).map_err(|error| override_error(&error))?;
    if body.only {
        override_ = override_.only();
    }
    let selection = match (&body.rule, body.all_rules) {
        (Some(_), true) => {
            return Err(ApiError::invalid("cannot be combined with `rule`").at("all_rules"));
        }
        (Some(rule), false) => RuleSelection::Named(rule.as_str().to_owned()),
        (None, true) => RuleSelection::All,
        (None, false) => RuleSelection::Unambiguous,
    };
    let expires_at = body.expires_at.as_ref().map(|text| parse_rfc3339(text.as_str()));
    let expires_at =
        expires_at.transpose().map_err(|detail| ApiError::invalid(detail).at("expires_at"))?;
    let text = |text: Option<Text<'_>>| text.map(|text| text.0.into_owned());
    Ok(ParsedOverride {
        override_: override_.valid(Timestamp::EPOCH, expires_at),
        selection,
        fresh: body.fresh.into(),
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
    let candidates = error.candidates().iter().map(RuleCandidate::from).collect();
    ApiError::invalid(error.to_string()).at(field).with_candidates(candidates)
}

//! Bodies into overrides.

use serde::Deserialize;
use tollgate::{Override, OverrideError, OverrideErrorKind, Timestamp};

use super::limit::LimitBody;
use super::parse::parse;
use super::scalar::{Object, Text, present};
use super::time::moment;
use crate::error::ApiError;

/// The body of PUT /admin/external/clients/{id}/limits.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OverrideBody<'a> {
    #[serde(borrow)]
    limits: Vec<Object<LimitBody<'a>>>,
    #[serde(default, borrow, deserialize_with = "present")]
    reason: Option<Text<'a>>,
    #[serde(default, borrow, deserialize_with = "present")]
    author: Option<Text<'a>>,
    #[serde(default, borrow)]
    rule: Option<Text<'a>>,
    #[serde(default, borrow)]
    expires_at: Option<Text<'a>>,
}

/// What a body asks for.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) own: Override,
    pub(crate) author: Option<String>,
    pub(crate) reason: Option<String>,
}

/// Reads a body whole.
pub(crate) fn read(body: &[u8]) -> Result<Given, ApiError> {
    let body: OverrideBody<'_> = parse(body)?;
    let own = |(index, limit): (usize, &Object<LimitBody<'_>>)| {
        limit.0.own().map_err(|error| error.under(&format!("limits[{index}]")))
    };
    let limits = body.limits.iter().enumerate().map(own).collect::<Result<_, _>>()?;
    let mut own = Override::new(limits).map_err(|error| blame(&error))?;
    if let Some(rule) = &body.rule {
        own = own.for_rule(rule.as_str());
    }
    let until = body.expires_at.as_ref().map(|text| moment(text.as_str()));
    let until = until.transpose().map_err(|detail| ApiError::invalid(detail).at("expires_at"))?;
    let text = |text: Option<Text<'_>>| text.map(|text| text.0.into_owned());
    Ok(Given {
        own: own.valid(Timestamp::EPOCH, until),
        author: text(body.author),
        reason: text(body.reason),
    })
}

/// The field that is wrong with an override.
pub(crate) fn blame(error: &OverrideError) -> ApiError {
    let field = match error.kind() {
        OverrideErrorKind::Limit { index } => format!("limits[{index}]"),
        OverrideErrorKind::Rule => "rule".to_owned(),
        _ => "limits".to_owned(),
    };
    ApiError::invalid(error.to_string()).at(field)
}

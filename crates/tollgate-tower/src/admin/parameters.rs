//! The query parameters of the admin API.

use axum::extract::Query;
use http::{StatusCode, Uri};
use serde::Deserialize;
use tollgate::MAX_FACT_LENGTH;

use super::problem::Problem;

/// The query parameters.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    pub(super) tenant: Option<String>,
    pub(super) author: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) rule: Option<String>,
    pub(super) dry_run: Option<bool>,
}

impl Parameters {
    pub(super) fn parse(uri: &Uri) -> Result<Self, Problem> {
        let query = Query::<Self>::try_from_uri(uri);
        let Query(parameters) = query
            .map_err(|rejection| Problem::new(StatusCode::BAD_REQUEST, rejection.body_text()))?;
        check_length("tenant", parameters.tenant.as_deref(), MAX_FACT_LENGTH)?;
        if parameters.rule.as_deref() == Some("") {
            let reason = "must not be empty; omit it to remove all overrides of the client";
            return Err(Problem::invalid("rule", reason));
        }
        Ok(parameters)
    }

    /// Parses the parameters of an endpoint without `?rule=` and `?dry_run=`.
    pub(super) fn parse_plain(uri: &Uri) -> Result<Self, Problem> {
        Self::parse(uri)?.without_rule()?.without_dry_run()
    }

    pub(super) fn without_rule(self) -> Result<Self, Problem> {
        match self.rule {
            Some(_) => Err(Problem::invalid("rule", "is a parameter of DELETE only")),
            None => Ok(self),
        }
    }

    pub(super) fn without_dry_run(self) -> Result<Self, Problem> {
        match self.dry_run {
            Some(_) => Err(Problem::invalid("dry_run", "is a parameter of PUT only")),
            None => Ok(self),
        }
    }
}

/// Returns an error if the text is longer than `max` bytes.
pub(super) fn check_length(field: &str, text: Option<&str>, max: usize) -> Result<(), Problem> {
    match text {
        Some(text) if text.len() > max => {
            Err(Problem::invalid(field, format!("is longer than {max} bytes")))
        }
        _ => Ok(()),
    }
}

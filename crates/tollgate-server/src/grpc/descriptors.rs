//! Descriptors of a request as queries.

use tollgate::{Facts, Limit, Query, Request, Verb};

use super::proto::{RateLimitDescriptor, RateLimitOverride, RateLimitRequest};
use super::units::{calendar_limit, calendar_unit};
use crate::error::ApiError;

/// Maximum number of descriptors in a request.
const MAX_DESCRIPTORS: usize = 100;

/// Returns the query of each descriptor, in order.
pub(super) fn queries(request: &RateLimitRequest) -> Result<Vec<(Verb, Query<'static>)>, ApiError> {
    let RateLimitRequest { domain, descriptors, hits_addend } = request;
    if domain.is_empty() {
        return Err(ApiError::invalid("must not be empty").at("domain"));
    }
    match descriptors.len() {
        0 => return Err(ApiError::invalid("must not be empty").at("descriptors")),
        1..=MAX_DESCRIPTORS => {}
        count => {
            let detail = format!("has {count} items; the maximum is {MAX_DESCRIPTORS}");
            return Err(ApiError::invalid(detail).at("descriptors"));
        }
    }
    // 0 is the value of an absent field.
    let default_hits = u64::from(*hits_addend).max(1);
    let query = |(index, descriptor)| {
        let at = |error: ApiError| error.under(&format!("descriptors[{index}]"));
        query(domain, descriptor, index, default_hits).map_err(at)
    };
    descriptors.iter().enumerate().map(query).collect()
}

fn query(
    domain: &str,
    descriptor: &RateLimitDescriptor,
    index: usize,
    default_hits: u64,
) -> Result<(Verb, Query<'static>), ApiError> {
    let RateLimitDescriptor { entries, limit, hits_addend, is_negative_hits } = descriptor;
    if entries.is_empty() {
        return Err(ApiError::invalid("must not be empty").at("entries"));
    }
    if let Some(nameless) = entries.iter().position(|entry| entry.key.is_empty()) {
        let field = format!("entries[{nameless}].key");
        return Err(ApiError::invalid("must not be empty").at(field));
    }
    let pairs = entries.iter().map(|entry| (&entry.key, &entry.value));
    let facts = Facts::of_descriptor(domain, pairs, index)
        .map_err(|error| ApiError::invalid(error.to_string()))?;
    let (verb, cost) = match (hits_addend.unwrap_or(default_hits), *is_negative_hits) {
        // A peek consumes nothing and returns what one hit would get.
        (0, _) => (Verb::Peek, 1),
        (hits, false) => (Verb::Take, hits),
        (hits, true) => (Verb::Refund, hits),
    };
    let mut request = Request::new(facts).without_default_limit().with_cost(cost);
    if let Some(limit) = limit {
        request = request.with_limit(own_limit(limit).map_err(|error| error.under("limit"))?);
    }
    Ok((verb, Query::from(request)))
}

fn own_limit(limit: &RateLimitOverride) -> Result<Limit, ApiError> {
    let RateLimitOverride { requests_per_unit, unit } = *limit;
    let Some(unit) = calendar_unit(unit) else {
        let detail = format!(
            "{unit} is not a unit; use SECOND 1, MINUTE 2, HOUR 3, DAY 4, MONTH 5, YEAR 6 or WEEK 7"
        );
        return Err(ApiError::invalid(detail).at("unit"));
    };
    let limit = calendar_limit(requests_per_unit, unit);
    limit.map_err(|error| ApiError::invalid(error.to_string()).at("requests_per_unit"))
}

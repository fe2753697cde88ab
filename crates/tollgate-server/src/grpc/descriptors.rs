//! Descriptors of a request as queries.

use hyper::HeaderMap;
use hyper::header::HeaderValue;
use tollgate::{Costs, Facts, Limit, Query, Request, Verb};

use super::proto::{RateLimitDescriptor, RateLimitOverride, RateLimitRequest};
use super::units::{calendar_limit, calendar_unit};
use crate::error::ApiError;
use crate::wire::costs::Amount;

/// Maximum number of descriptors in a request.
const MAX_DESCRIPTORS: usize = 100;

/// Name of the metadata with the costs of each descriptor by unit, such as `tokens=1800,requests=1`. They override
/// `hits_addend`.
pub(super) const COSTS: &str = "x-tollgate-costs";
/// Maximum length of the values of [`COSTS`] in bytes, in all.
pub(super) const MAX_COSTS: usize = 2048;

/// Returns the query of each descriptor, in order.
pub(super) fn queries(
    request: &RateLimitRequest,
    headers: &HeaderMap,
) -> Result<Vec<(Verb, Query<'static>)>, ApiError> {
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
    let costs = costs(headers)?;
    let query = |(index, descriptor)| {
        let at = |error: ApiError| error.under(&format!("descriptors[{index}]"));
        let request = request_of(domain, descriptor, index).map_err(at)?;
        Ok(with_costs(request, descriptor, default_hits, costs.as_ref()))
    };
    descriptors.iter().enumerate().map(query).collect()
}

/// Reads the metadata with costs by unit; `None` without it.
pub(super) fn costs(headers: &HeaderMap) -> Result<Option<Costs>, ApiError> {
    let invalid = |reason: String| ApiError::invalid(reason).at(COSTS);
    let length: usize = headers.get_all(COSTS).iter().map(HeaderValue::len).sum();
    if length > MAX_COSTS {
        return Err(invalid(format!("has {length} bytes; the maximum is {MAX_COSTS}")));
    }
    let mut amounts = Vec::new();
    for value in headers.get_all(COSTS) {
        let text = value.to_str().map_err(|_| invalid("is not ASCII".to_owned()))?;
        for amount in text.split(',') {
            amounts.push(Amount::parse(amount.trim()).map_err(invalid)?);
        }
    }
    if amounts.is_empty() {
        return Ok(None);
    }
    Amount::costs(&amounts).map(Some).map_err(invalid)
}

/// Returns the request of a descriptor with its costs: those of the metadata, otherwise its hits.
fn with_costs(
    request: Request<'static>,
    descriptor: &RateLimitDescriptor,
    default_hits: u64,
    costs: Option<&Costs>,
) -> (Verb, Query<'static>) {
    let is_refund = descriptor.is_negative_hits;
    let verb = if is_refund { Verb::Refund } else { Verb::Take };
    if let Some(costs) = costs {
        return (verb, Query::from(request.with_costs(costs.clone())));
    }
    let (verb, hits) = match descriptor.hits_addend.unwrap_or(default_hits) {
        // A peek consumes nothing and returns what one hit would get.
        0 => (Verb::Peek, 1),
        hits => (verb, hits),
    };
    (verb, Query::from(request.with_cost(hits).in_unit_of_rule()))
}

fn request_of(
    domain: &str,
    descriptor: &RateLimitDescriptor,
    index: usize,
) -> Result<Request<'static>, ApiError> {
    let RateLimitDescriptor { entries, limit, .. } = descriptor;
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
    let mut request = Request::new(facts).without_default_limit();
    if let Some(limit) = limit {
        request = request.with_limit(own_limit(limit).map_err(|error| error.under("limit"))?);
    }
    Ok(request)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_costs_are_refused() {
        const REQUESTS: &str = "requests=1";
        let of = |length: usize| {
            let text = format!("tokens={}7", "0".repeat(length - "tokens=7".len()));
            let mut headers = HeaderMap::new();
            headers.insert(COSTS, HeaderValue::from_str(&text).unwrap());
            headers.append(COSTS, HeaderValue::from_static(REQUESTS));
            costs(&headers)
        };
        let max = MAX_COSTS - REQUESTS.len();
        assert!(of(max).is_ok_and(|costs| costs.is_some()));
        let error = of(max + 1).unwrap_err().to_string();
        assert!(error.contains(COSTS) && error.contains("2049 bytes"), "{error}");
    }
}

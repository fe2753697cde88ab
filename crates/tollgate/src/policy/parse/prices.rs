//! Parses `prices`.

use std::num::NonZero;

use crate::naming::valid_name;
use crate::policy::error::{FieldError, FieldErrors, PolicyErrorKind};
use crate::policy::node_ref::{NodeRef, quoted};
use crate::policy::prices::{Prices, UnitPrice};

/// The fields of a price. All others are names of usages.
pub(super) const PRICE: &[&str] = &["per"];

/// The maximum number of priced units: with `requests` and `tokens`, as many as a request can cost.
const MAX_UNITS: usize = 14;

/// The maximum number of usages in a price.
const MAX_USAGES: usize = 16;

/// The maximum length of the name of a usage.
const MAX_NAME: usize = 64;

/// Parses the prices, by unit. Invalid ones are recorded in `errors` and left out.
pub(super) fn parse(map: NodeRef<'_>, errors: &mut FieldErrors) -> Prices {
    let entries = errors.record(map.entries()).unwrap_or_default();
    if entries.len() > MAX_UNITS {
        let error = map.error(PolicyErrorKind::TooLarge, "must have prices in at most 14 units");
        errors.record::<()>(Err(error));
        return Prices::default();
    }
    Prices::new(entries.into_iter().filter_map(|entry| price(entry, errors)).collect())
}

fn price(entry: NodeRef<'_>, errors: &mut FieldErrors) -> Option<UnitPrice> {
    let unit = errors.record(unit(entry));
    let fields = errors.record(entry.entries())?;
    let (per, usages): (Vec<_>, Vec<_>) =
        fields.into_iter().partition(|field| PRICE.contains(&field.name()));
    let per = match per.first() {
        Some(per) => errors.record(per_amount(*per)),
        None => {
            let reason = "needs per, the usage that the prices are for, such as per: 1000";
            errors.record(Err(entry.error(PolicyErrorKind::MissingField, reason)))
        }
    };
    if !(1..=MAX_USAGES).contains(&usages.len()) {
        let reason = "must have prices of 1 to 16 usages, such as input: 3";
        return errors.record(Err(entry.invalid(reason)));
    }
    let prices = usages.into_iter().filter_map(|field| errors.record(usage_price(field))).collect();
    Some(UnitPrice { unit: unit?, prices, per: per? })
}

fn unit(entry: NodeRef<'_>) -> Result<Box<str>, FieldError> {
    let name = entry.name();
    if name == "requests" {
        let reason = "requests have no price: a request costs 1, or what the caller sends";
        return Err(entry.name_error(PolicyErrorKind::Value, reason));
    }
    valid_name("unit", name)
        .map_err(|error| entry.name_error(PolicyErrorKind::Value, error.to_string()))
}

fn per_amount(per: NodeRef<'_>) -> Result<NonZero<u64>, FieldError> {
    NonZero::new(per.number(1)?).ok_or_else(|| per.invalid("must not be 0"))
}

fn usage_price(field: NodeRef<'_>) -> Result<(Box<str>, u64), FieldError> {
    let name = field.name();
    let is_valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let has_letter = name.starts_with(|first: char| first.is_ascii_lowercase());
    if has_letter && name.len() <= MAX_NAME && name.bytes().all(is_valid) {
        return Ok((name.into(), field.number(0)?));
    }
    let reason = format!(
        "invalid usage name {}; use a lower-case letter, then up to 63 of a-z 0-9 _",
        quoted(name)
    );
    Err(field.name_error(PolicyErrorKind::Value, reason))
}

//! Costs by unit in request bodies, and as text: `tokens=1800`.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use tollgate::{Costs, CostsError, MAX_UNITS, Unit};

use super::scalar::{Integer, MAX_INTEGER, Text};
use crate::error::ApiError;

/// An object with an amount for each unit, in order. A duplicate unit is an error.
#[derive(Debug)]
pub(crate) struct CostsBody<'a>(Vec<(Text<'a>, Integer)>);

impl<'de: 'a, 'a> Deserialize<'de> for CostsBody<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CostsVisitor<'a>(PhantomData<&'a str>);

        impl<'de: 'a, 'a> Visitor<'de> for CostsVisitor<'a> {
            type Value = CostsBody<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with integer values")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<CostsBody<'a>, M::Error> {
                let mut amounts: Vec<(Text<'a>, Integer)> = Vec::with_capacity(2);
                while let Some(unit) = map.next_key::<Text<'a>>()? {
                    if amounts.iter().any(|(known, _)| *known == unit) {
                        let unit = truncated(unit.as_str());
                        return Err(M::Error::custom(format!("duplicate field `{unit}`")));
                    }
                    if amounts.len() == MAX_UNITS {
                        let detail = format!("at most {MAX_UNITS} units are allowed");
                        return Err(M::Error::custom(detail));
                    }
                    amounts.push((unit, map.next_value()?));
                }
                Ok(CostsBody(amounts))
            }
        }

        deserializer.deserialize_map(CostsVisitor(PhantomData))
    }
}

impl CostsBody<'_> {
    /// Returns the costs, or an error that names the invalid unit.
    pub(crate) fn build(&self) -> Result<Costs, ApiError> {
        for (unit, _) in &self.0 {
            Unit::new(unit.as_str()).map_err(|error| {
                let field = format!("costs.{}", truncated(unit.as_str()));
                ApiError::invalid(error.to_string()).at(field)
            })?;
        }
        let amounts = self.0.iter().map(|(unit, amount)| (unit.as_str(), amount.0));
        Costs::of(amounts).map_err(|error| costs_error(&error))
    }
}

/// Returns the costs of a body with the fields `cost` and `costs`. Without them, it costs one request.
#[inline]
pub(crate) fn build_costs(
    cost: Option<Integer>,
    costs: Option<&CostsBody<'_>>,
) -> Result<Costs, ApiError> {
    match (cost, costs) {
        (None, None) => Ok(Costs::requests(1)),
        (Some(cost), None) => Ok(Costs::requests(cost.0)),
        (None, Some(costs)) => costs.build(),
        (Some(_), Some(_)) => {
            let detail = "`cost` and `costs` exclude each other; send one of them";
            Err(ApiError::invalid(detail).at("cost"))
        }
    }
}

/// An amount as text: `5` are requests, `tokens=1800` is the amount of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Amount {
    Requests(u64),
    OfUnit(String, u64),
}

impl Amount {
    /// Parses an amount.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let Some((unit, amount)) = text.split_once('=') else {
            return parse_amount(text).map(Self::Requests);
        };
        let unit_error = |error: tollgate::QuotaError| error.to_string();
        Unit::new(unit).map_err(unit_error)?;
        Ok(Self::OfUnit(unit.to_owned(), parse_amount(amount)?))
    }

    /// Returns the costs of a command. Without amounts, it costs one request.
    pub(crate) fn costs(amounts: &[Self]) -> Result<Costs, String> {
        let pair = |amount: &Self| match amount {
            Self::Requests(amount) => ("requests".to_owned(), *amount),
            Self::OfUnit(unit, amount) => (unit.clone(), *amount),
        };
        match amounts {
            [] => Ok(Costs::requests(1)),
            [Self::Requests(amount)] => Ok(Costs::requests(*amount)),
            amounts if amounts.iter().any(|amount| matches!(amount, Self::Requests(_))) => {
                Err("name the unit of each amount, as in requests=1".to_owned())
            }
            amounts => Costs::of(amounts.iter().map(pair)).map_err(|error| error.to_string()),
        }
    }
}

fn parse_amount(text: &str) -> Result<u64, String> {
    let is_integer = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let amount = text.parse().ok().filter(|amount| is_integer && *amount <= MAX_INTEGER);
    amount.ok_or_else(|| format!("must be an integer from 0 to {MAX_INTEGER}"))
}

fn costs_error(error: &CostsError) -> ApiError {
    ApiError::invalid(error.to_string()).at("costs")
}

/// Returns the first 64 characters of a name from the client, for an error message.
fn truncated(name: &str) -> String {
    name.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(amounts: &[&str]) -> Result<Costs, String> {
        let amounts: Result<Vec<_>, _> = amounts.iter().map(|text| Amount::parse(text)).collect();
        Amount::costs(&amounts?)
    }

    #[test]
    fn amounts_as_text_are_requests_or_name_their_unit() {
        assert_eq!(parsed(&[]), Ok(Costs::requests(1)));
        assert_eq!(parsed(&["0"]), Ok(Costs::requests(0)));
        let both = Costs::requests(1).and("tokens", 1800).unwrap();
        assert_eq!(parsed(&["tokens=1800", "requests=1"]), Ok(both));
        assert_eq!(parsed(&["tokens=7"]), Ok(Costs::of([("tokens", 7)]).unwrap()));
    }

    #[test]
    fn amounts_as_text_are_validated() {
        let number = "must be an integer from 0 to 9007199254740991";
        for text in ["", "-1", "+1", "1.5", "9007199254740992", "tokens=", "tokens=x", "a=b=1"] {
            assert_eq!(parsed(&[text]).unwrap_err(), number, "{text}");
        }
        assert!(parsed(&["a b=1"]).unwrap_err().starts_with("invalid unit \"a b\""));
        assert!(parsed(&["=1"]).unwrap_err().starts_with("invalid unit \"\""));
        let twice = "the costs name the unit \"tokens\" twice";
        assert_eq!(parsed(&["tokens=1", "tokens=2"]).unwrap_err(), twice);
        let mixed = "name the unit of each amount, as in requests=1";
        assert_eq!(parsed(&["1", "tokens=2"]).unwrap_err(), mixed);
        assert_eq!(parsed(&["1", "1"]).unwrap_err(), mixed);
    }
}

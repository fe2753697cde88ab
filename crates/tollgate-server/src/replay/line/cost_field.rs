//! Costs by unit of a line, from its fields.

use tollgate::Unit;

use super::LineError;
use crate::replay::error::ReplayError;
use crate::wire::scalar::MAX_INTEGER;

/// Starts the name under which a cost is kept among the facts of a line. A fact has no space in its name.
const PREFIX: &str = "cost ";

/// The field of an access log that can be a cost: the size of the response.
pub(super) const SIZE: &str = "size";

/// A field with the amount of a unit: `bytes=body_bytes_sent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CostField {
    unit: String,
    pub(super) field: String,
}

impl CostField {
    /// Parses `UNIT=FIELD`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((unit, field)) if !field.is_empty() => {
                Unit::new(unit).map_err(|error| error.to_string())?;
                Ok(Self { unit: unit.to_owned(), field: field.to_owned() })
            }
            _ => Err("must be UNIT=FIELD, such as bytes=body_bytes_sent".to_owned()),
        }
    }

    /// Returns an error if two fields have the same unit.
    pub(crate) fn check_distinct(fields: &[Self]) -> Result<(), ReplayError> {
        for (index, field) in fields.iter().enumerate() {
            if fields.iter().take(index).any(|earlier| earlier.unit == field.unit) {
                let unit = &field.unit;
                return Err(ReplayError::new(format!("--cost-field names the unit {unit} twice")));
            }
        }
        Ok(())
    }

    /// Returns the name under which the cost is kept among the facts of a line.
    pub(crate) fn name(&self) -> String {
        format!("{PREFIX}{}", self.unit)
    }
}

/// Returns the unit of a cost that is kept under this name; `None` for a fact.
pub(crate) fn unit(name: &str) -> Option<&str> {
    name.strip_prefix(PREFIX)
}

/// Checks the text of an amount. `None` if it is absent: empty, or `-` as in access logs.
pub(super) fn amount(text: &[u8]) -> Result<Option<&[u8]>, LineError> {
    if text.is_empty() || text == b"-" {
        return Ok(None);
    }
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<u64>().ok());
    let is_valid = text.iter().all(u8::is_ascii_digit) && number.is_some_and(|n| n <= MAX_INTEGER);
    if is_valid { Ok(Some(text)) } else { Err(INVALID) }
}

pub(super) const INVALID: LineError = "a cost is not an integer from 0 to 9007199254740991";

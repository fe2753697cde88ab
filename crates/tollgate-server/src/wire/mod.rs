//! JSON encoding, independent of the transport: request bodies into queries, decisions into responses.

pub(crate) mod batch;
pub(crate) mod costs;
pub(crate) mod decision;
#[cfg(test)]
pub(crate) mod decision_schema;
pub(crate) mod explanation;
#[cfg(test)]
pub(crate) mod fuzz_tests;
pub(crate) mod json;
pub(crate) mod limit;
pub(crate) mod override_body;
pub(crate) mod override_effect_view;
pub(crate) mod override_view;
pub(crate) mod parse;
pub(crate) mod permit;
pub(crate) mod query;
pub(crate) mod reservation;
pub(crate) mod scalar;
pub(crate) mod settled;
pub(crate) mod time;

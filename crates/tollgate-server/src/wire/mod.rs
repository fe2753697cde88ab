//! What crosses the wire: bodies into questions, decisions into answers. No transport is known here.

pub(crate) mod decision;
pub(crate) mod explanation;
pub(crate) mod json;
pub(crate) mod limit;
pub(crate) mod override_body;
pub(crate) mod override_view;
pub(crate) mod parse;
pub(crate) mod permit;
pub(crate) mod query;
pub(crate) mod scalar;
pub(crate) mod time;

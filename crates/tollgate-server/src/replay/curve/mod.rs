//! The curve "limit → share of requests refused" of each limit.
//!
//! Every limit is tried at up to 24 counts at once, with the burst in proportion, as if it were the only limit of its
//! rule. A limit of capacity n cannot refuse a key before its (n + 1)th request, so a key has no state for the counts that
//! it has not reached: it keeps the times of its first requests and computes the state when it is needed
//! ([`key_states`]). Keys that are full again are dropped, as in the memory store. The steps are those of the server.

mod grid;
mod key_states;
mod limit_curve;

pub(super) use grid::{first_values, refined_values};
pub(super) use limit_curve::{CurvePoint, LimitCurve};

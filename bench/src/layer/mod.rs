//! What a layer in front of an axum route costs, beside `tower_governor`.

mod contender;
mod contest;
pub mod report;

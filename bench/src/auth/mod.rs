//! Benchmark of forward auth behind nginx, compared with an `auth_request` to a constant response.
//!
//! A [`candidate`] is nginx with an auth server and an app behind it; [`report`] measures both at half load.

pub mod candidate;
pub mod report;

//! Tollgate as middleware.

mod address;

pub use address::{ClientAddress, ProxyHeader, TrustedProxies, TrustedProxiesError};

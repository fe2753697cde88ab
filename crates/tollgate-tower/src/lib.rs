//! Tollgate as middleware.

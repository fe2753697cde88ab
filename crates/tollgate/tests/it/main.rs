//! What the library promises, one file a promise.

mod conformance;

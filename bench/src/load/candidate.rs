//! A running server and the requests it receives.

use tempfile::NamedTempFile;

use super::task::RequestSpec;
use crate::server::Server;

/// A server under measurement.
#[derive(Debug)]
pub struct Candidate {
    /// The server.
    pub server: Server,
    /// Its requests.
    pub requests: RequestSpec,
    /// The file of its policy or limits, kept because the server may reload it.
    pub config: Option<NamedTempFile>,
}

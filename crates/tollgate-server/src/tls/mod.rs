//! TLS: the files that it needs, and both ends of it.

mod asking;
mod pem_file;
mod trouble;

use std::sync::Arc;

use tokio_rustls::rustls::crypto::{CryptoProvider, ring};

pub(crate) use asking::{Asking, AskingFiles};

/// The only protocol that is spoken within TLS, as ALPN tells it.
const HTTP: &[u8] = b"http/1.1";

/// Explicitly this one: what else is linked in may want another.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

//! TLS: the files that it needs, and both ends of it.

mod client;
mod current_config;
mod error_text;
mod pem_file;
mod rotation;
mod server;
mod validity;

use std::sync::Arc;

use tokio_rustls::rustls::crypto::{CryptoProvider, ring};

pub(crate) use client::{ClientTls, ClientTlsFiles};
pub(crate) use current_config::CurrentConfig;
pub(crate) use pem_file::PemFile;
pub(crate) use rotation::watch;
pub(crate) use server::{ServerPems, ServerTlsFiles};

/// The only protocol that is spoken within TLS, as ALPN tells it.
const HTTP: &[u8] = b"http/1.1";

/// Explicitly this one: what else is linked in may want another.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

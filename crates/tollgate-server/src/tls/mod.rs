//! TLS of the server and of the client commands.

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

/// ALPN name of HTTP/1.1. A listener of another protocol replaces it.
const HTTP: &[u8] = b"http/1.1";

/// Returns the ring provider. Set explicitly because other linked crates may install a different default.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

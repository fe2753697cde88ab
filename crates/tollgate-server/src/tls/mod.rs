//! TLS: the files that it needs, and both ends of it.

mod asking;
mod current;
mod dates;
mod error_text;
mod pem_file;
mod rotation;
mod serving;

use std::sync::Arc;

use tokio_rustls::rustls::crypto::{CryptoProvider, ring};

pub(crate) use asking::{Asking, AskingFiles};
pub(crate) use current::Current;
pub(crate) use pem_file::PemFile;
pub(crate) use rotation::watch;
pub(crate) use serving::{Held, ServingFiles};

/// The only protocol that is spoken within TLS, as ALPN tells it.
const HTTP: &[u8] = b"http/1.1";

/// Explicitly this one: what else is linked in may want another.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

//! HTTP: bytes in, bytes out. Nothing is decided here.

mod accept;
mod admin;
mod body;
mod connection;
mod decide;
mod docs;
mod guarded;
mod health;
mod listings;
mod patience;
mod reply;
mod routes;

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::app::App;
use crate::settings::Settings;
use crate::shutdown::Shutdown;

/// Which paths a listener serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    /// All of them.
    Whole,
    /// All but those for operators.
    Deciding,
    /// Those for operators.
    Operating,
}

/// Serves on a listener in the background until the shutdown is through.
pub(crate) fn listen(
    listener: TcpListener,
    surface: Surface,
    app: Arc<App>,
    shutdown: &Shutdown,
    settings: &Settings,
) -> JoinHandle<()> {
    if let Ok(address) = listener.local_addr() {
        eprintln!("listening on http://{address}");
    }
    let limits = accept::Limits { connections: settings.max_connections, drain: settings.drain };
    let router = routes::router(surface, Arc::clone(&app));
    let dispatch = Arc::new(connection::Dispatch { app, router, surface });
    tokio::spawn(accept::accept(
        listener,
        dispatch,
        limits,
        shutdown.requested(),
        shutdown.hurried(),
    ))
}

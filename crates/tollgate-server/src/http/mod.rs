//! HTTP listeners: parse requests, call the application, write responses. No decision logic.

mod accept;
mod admin;
mod assets;
mod auth;
mod body;
mod body_guard;
mod connection;
mod connections;
mod dashboard;
mod decide;
mod docs;
mod handshake;
mod health;
mod listings;
mod live;
mod reply;
mod routes;
mod session;
mod timeouts;

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::app::App;
use crate::settings::Settings;
use crate::shutdown::Shutdown;
use crate::telemetry::Traces;
use crate::tls::CurrentConfig;
use connections::Connections;

/// The set of paths that a listener serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    /// All paths.
    All,
    /// All paths except those for operators.
    Decisions,
    /// The paths for operators: the dashboard, `/api` and `/admin`.
    Operations,
}

/// A bound socket, the paths it serves and its TLS configuration.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) socket: TcpListener,
    pub(crate) surface: Surface,
    /// The current TLS configuration; plain HTTP if `None`.
    pub(crate) tls: Option<Arc<CurrentConfig>>,
}

/// Serves a listener in a background task until shutdown completes.
pub(crate) fn listen(
    listener: Listener,
    app: Arc<App>,
    traces: &Traces,
    shutdown: &Shutdown,
    settings: &Settings,
) -> JoinHandle<()> {
    let Listener { socket, surface, tls } = listener;
    if let Ok(address) = socket.local_addr() {
        let scheme = if tls.is_some() { "https" } else { "http" };
        eprintln!("listening on {scheme}://{address}");
    }
    let limits = accept::Limits { connections: settings.max_connections, drain: settings.drain };
    let router = traces.record_routes(routes::router(surface, Arc::clone(&app)));
    let dispatch = Arc::new(connection::Dispatch { app, router, surface, traces: traces.clone() });
    tokio::spawn(accept::accept(
        socket,
        Connections::new(dispatch, tls),
        limits,
        shutdown.requested(),
        shutdown.drain_skipped(),
    ))
}

//! HTTP: bytes in, bytes out. Nothing is decided here.

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
use connections::Reception;

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

/// Where clients come in.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) listener: TcpListener,
    pub(crate) surface: Surface,
    /// What TLS is agreed on with; without it HTTP is plain.
    pub(crate) tls: Option<Arc<CurrentConfig>>,
}

/// Serves on a listener in the background until the shutdown is through.
pub(crate) fn listen(
    door: Door,
    app: Arc<App>,
    traces: &Traces,
    shutdown: &Shutdown,
    settings: &Settings,
) -> JoinHandle<()> {
    let Door { listener, surface, tls } = door;
    if let Ok(address) = listener.local_addr() {
        let scheme = if tls.is_some() { "https" } else { "http" };
        eprintln!("listening on {scheme}://{address}");
    }
    let limits = accept::Limits { connections: settings.max_connections, drain: settings.drain };
    let router = traces.record_routes(routes::router(surface, Arc::clone(&app)));
    let dispatch = Arc::new(connection::Dispatch { app, router, surface, traces: traces.clone() });
    tokio::spawn(accept::accept(
        listener,
        Reception::new(dispatch, tls),
        limits,
        shutdown.requested(),
        shutdown.hurried(),
    ))
}

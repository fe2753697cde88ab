//! `tollgate serve`: startup, background tasks and shutdown of the server.

#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod grpc_connection_tests;
mod start;
#[cfg(test)]
mod timeout_tests;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tollgate::Limiter;
use tracing::{error, info, warn};

use crate::access::Guard;
use crate::api::Service;
use crate::api::admin::follow_resets;
use crate::error::ServeError;
use crate::files::policy_file::PolicyFile;
use crate::grpc::Grpc;
use crate::http::{Http, Surface};
use crate::listener::{Listener, ListenerContext, ListenerLimits, Protocol, bind, listen};
use crate::metrics::{Exhausted, Metrics};
use crate::node::overrides::OverrideStore;
use crate::node::reload::{self, ReloadReply, ReloadRequests};
use crate::node::report::Reporter;
use crate::node::{Identity, NodeContext, RedisCopy, SavedState, live, notify, store_maintenance};
use crate::resp::Resp;
use crate::settings::{AllowedHosts, ForwardAuthSettings, GRPC, RESP, Settings, TlsSettings};
use crate::shutdown::{Readiness, Shutdown};
use crate::store::{Backend, StoreSetup};
use crate::telemetry::Traces;
use crate::tls::{self, CurrentConfig};
use start::{StartNodes, log_start, open_data_directory};

/// Serves until a shutdown is requested, then finishes the requests in progress.
pub(crate) async fn serve(
    settings: Settings,
    mut front_ends: Vec<FrontEnd>,
    traces: &Traces,
) -> Result<(), ServeError> {
    front_ends.extend(settings.resp.map(|address| FrontEnd::new(RESP, address, Resp::new)));
    front_ends.extend(grpc_front_end(&settings));
    let source = PolicyFile::new(settings.policy.clone(), settings.default_limit.clone());
    let text = source.read().map_err(ServeError::new)?;
    let policy = source.compile(text.as_deref()).map_err(ServeError::new)?;
    for warning in policy.warnings() {
        warn!(%warning, "policy warning");
    }
    let shutdown = Shutdown::on_signals().map_err(ServeError::new)?;
    // Register the handler before slow steps: an unhandled SIGHUP terminates the process.
    let hangup = signal(SignalKind::hangup()).map_err(ServeError::new)?;
    let (directory, copy) = open_data_directory(&settings)?;
    let start_nodes = StartNodes::of(copy.as_deref(), &settings);
    let StoreSetup { backend, info, watch } =
        StoreSetup::open(&settings, start_nodes.count).await?;
    let listeners = Listeners::bind(&settings, front_ends)?;
    let exhausted = match &backend {
        Backend::Memory(_) => Exhausted::Local,
        Backend::Redis(_) => Exhausted::Distributed,
    };
    let limiter = Limiter::with_observer(backend, policy, Metrics::new(exhausted, watch));
    let limiter = Arc::new(limiter);
    let saved = directory
        .map(|directory| SavedState::open(directory, settings.bad_state, &limiter))
        .transpose()?;
    let overrides = OverrideStore::open(Arc::clone(&limiter), &settings, copy.as_ref()).await?;
    let overrides = Arc::new(overrides);
    let identity = Identity::new(&settings.node_id, listeners.address()?);
    let readiness = Arc::new(Readiness::default());
    let node = NodeContext::new(limiter, overrides, source, identity, info, Arc::clone(&readiness));
    let node = Arc::new(node);
    log_start(&node, &settings, start_nodes);
    node.note_start();
    follow_resets(&node);
    let maintenance = tokio::spawn(store_maintenance::run(
        node.shared_limiter(),
        settings.redis.probe,
        shutdown.finished(),
    ));
    let reporter = Reporter::register(&node, &settings, copy.clone()).await;
    let (reloads, reload_requests) = ReloadRequests::new();
    let reload = (hangup, reload_requests, text);
    let background = BackgroundTasks::start(&node, &shutdown, (saved, copy), reporter, reload);
    let tls = watch_tls(settings.tls.as_ref(), &shutdown)?;

    // Before the first request, because a response of a node that is not ready closes its connection.
    readiness.set_ready();
    let front_ends = node.metrics().front_ends().clone();
    let guard = Guard::new(settings.tokens.clone());
    let service = Arc::new(Service::new(Arc::clone(&node), guard, reloads, traces.clone()));
    let limits = ListenerLimits { connections: settings.max_connections, drain: settings.drain };
    let context = ListenerContext { limits, readiness, front_ends };
    let listening = listeners.listen(tls.as_ref(), &service, &context, &shutdown);
    let notifier = notify::start(&node, &shutdown);
    for listener in listening {
        listener.await.map_err(ServeError::new)?;
    }
    shutdown.finish();
    notifier.await.map_err(ServeError::new)?;
    maintenance.await.map_err(ServeError::new)?;
    background.join().await?;
    info!("stopped");
    Ok(())
}

/// Returns the gRPC front end, if its address is set.
fn grpc_front_end(settings: &Settings) -> Option<FrontEnd> {
    let headers = settings.grpc_headers;
    let grpc = move |service| Grpc::new(service, headers);
    settings.grpc.map(|address| FrontEnd::new(GRPC, address, grpc))
}

/// Returns the current TLS configuration, and starts a task that reloads it when its files change.
fn watch_tls(
    settings: Option<&TlsSettings>,
    shutdown: &Shutdown,
) -> Result<Option<Arc<CurrentConfig>>, ServeError> {
    let Some(TlsSettings { files, pems, config }) = settings else { return Ok(None) };
    let current = Arc::new(CurrentConfig::new(Arc::clone(config)));
    let hangup = signal(SignalKind::hangup()).map_err(ServeError::new)?;
    let (files, pems, stop) = (files.clone(), pems.clone(), shutdown.requested());
    let watching = tls::watch(Arc::clone(&current), files, pems, hangup, stop);
    tokio::spawn(async {
        if let Err(error) = watching.await {
            error!(%error, "certificate reloading stopped");
        }
    });
    Ok(Some(current))
}

/// The background tasks of the server.
struct BackgroundTasks {
    policy_reload: JoinHandle<io::Result<()>>,
    override_expiry: JoinHandle<()>,
    live_view: JoinHandle<()>,
    reporter: Option<JoinHandle<()>>,
    redis_copy: Option<JoinHandle<()>>,
    saved_state: Option<JoinHandle<Result<(), ServeError>>>,
}

impl BackgroundTasks {
    fn start(
        node: &Arc<NodeContext>,
        shutdown: &Shutdown,
        (saved, copy): (Option<SavedState>, Option<Arc<RedisCopy>>),
        reporter: Option<Reporter>,
        (hangup, requests, text): (Signal, mpsc::Receiver<ReloadReply>, Option<String>),
    ) -> Self {
        let shared = || Arc::clone(node);
        let overrides = Arc::clone(node.overrides());
        Self {
            policy_reload: tokio::spawn(reload::watch(
                shared(),
                text,
                (hangup, requests),
                shutdown.requested(),
            )),
            override_expiry: tokio::spawn(overrides.run_expiry(shutdown.finished())),
            live_view: tokio::spawn(live::run(shared(), shutdown.requested())),
            reporter: reporter
                .map(|reporter| tokio::spawn(reporter.run(shared(), shutdown.finished()))),
            redis_copy: copy
                .map(|copy| tokio::spawn(copy.run(node.shared_limiter(), shutdown.finished()))),
            saved_state: saved
                .map(|saved| tokio::spawn(saved.run(node.shared_limiter(), shutdown.finished()))),
        }
    }

    /// Waits until all tasks have stopped.
    async fn join(self) -> Result<(), ServeError> {
        self.policy_reload.await.map_err(ServeError::new)?.map_err(ServeError::new)?;
        self.override_expiry.await.map_err(ServeError::new)?;
        self.live_view.await.map_err(ServeError::new)?;
        if let Some(reporter) = self.reporter {
            reporter.await.map_err(ServeError::new)?;
        }
        if let Some(redis_copy) = self.redis_copy {
            redis_copy.await.map_err(ServeError::new)?;
        }
        if let Some(saved_state) = self.saved_state {
            saved_state.await.map_err(ServeError::new)??;
        }
        Ok(())
    }
}

/// Starts a front end on a bound listener.
type StartFrontEnd =
    dyn FnOnce(Arc<Service>, Listener, ListenerContext, &Shutdown) -> JoinHandle<()> + Send;

/// A further front end of `tollgate serve`: a protocol and the address that it listens on.
pub struct FrontEnd {
    setting: String,
    address: SocketAddr,
    start: Box<StartFrontEnd>,
}

impl FrontEnd {
    /// Creates a front end. `setting` names the flag or variable of the address, for errors. `protocol` receives the
    /// service when it is ready.
    pub fn new<P: Protocol>(
        setting: &str,
        address: SocketAddr,
        protocol: impl FnOnce(Arc<Service>) -> P + Send + 'static,
    ) -> Self {
        let start = |service, listener, context, shutdown: &Shutdown| {
            listen(listener, protocol(service), context, shutdown)
        };
        Self { setting: setting.to_owned(), address, start: Box::new(start) }
    }
}

impl FrontEnd {
    /// Returns the address and the setting that it comes from.
    pub(crate) fn address(&self) -> (&str, SocketAddr) {
        (&self.setting, self.address)
    }
}

impl fmt::Debug for FrontEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrontEnd").field("address", &self.address).finish_non_exhaustive()
    }
}

/// The bound sockets of the server.
struct Listeners {
    main: TcpListener,
    /// The separate socket of `--admin`.
    admin: Option<TcpListener>,
    further: Vec<(TcpListener, Box<StartFrontEnd>)>,
    forward_auth: ForwardAuthSettings,
    allowed_hosts: AllowedHosts,
}

impl Listeners {
    fn bind(settings: &Settings, front_ends: Vec<FrontEnd>) -> Result<Self, ServeError> {
        let main = bind("--http", settings.http)?;
        let admin = settings.admin.map(|address| bind("--admin", address)).transpose()?;
        let further = front_ends
            .into_iter()
            .map(|FrontEnd { setting, address, start }| Ok((bind(&setting, address)?, start)));
        let further = further.collect::<Result<_, ServeError>>()?;
        Ok(Self {
            main,
            admin,
            further,
            forward_auth: settings.forward_auth.clone(),
            allowed_hosts: settings.allowed_hosts.clone(),
        })
    }

    fn address(&self) -> Result<SocketAddr, ServeError> {
        self.main.local_addr().map_err(ServeError::new)
    }

    fn listen(
        self,
        tls: Option<&Arc<CurrentConfig>>,
        service: &Arc<Service>,
        context: &ListenerContext,
        shutdown: &Shutdown,
    ) -> Vec<JoinHandle<()>> {
        let surface = if self.admin.is_some() { Surface::Decisions } else { Surface::All };
        let admin = self.admin.map(|socket| (socket, Surface::Operations));
        let listener = |socket| Listener { socket, tls: tls.cloned() };
        let http = [(self.main, surface)].into_iter().chain(admin).map(|(socket, surface)| {
            let (forward_auth, hosts) = (self.forward_auth.clone(), self.allowed_hosts.clone());
            let protocol = Http::new(Arc::clone(service), surface, forward_auth, hosts);
            listen(listener(socket), protocol, context.clone(), shutdown)
        });
        let further = self.further.into_iter().map(|(socket, start)| {
            start(Arc::clone(service), listener(socket), context.clone(), shutdown)
        });
        http.chain(further).collect()
    }
}

//! A service for tests of connections.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::metrics::FrontEndCounters;
use crate::serve::*;
use crate::settings::args::ServeArgs;
use crate::settings::{Environment, SettingsFile};

pub(crate) const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9);

/// Creates the service of a node with the memory store and default settings.
pub(crate) async fn service() -> Arc<Service> {
    let environment = Environment::default();
    let settings =
        Settings::resolve(ServeArgs::default(), SettingsFile::default(), &environment, &[]);
    let settings = settings.expect("the default settings are valid");
    let source = PolicyFile::new(None, settings.default_limit.clone());
    let policy = source.load().expect("the default policy");
    let setup = StoreSetup::open(&settings, NonZeroU32::MIN).await.expect("the memory store");
    let metrics = Metrics::new(Exhausted::Local, setup.watch);
    let limiter = Arc::new(Limiter::with_observer(setup.backend, policy, metrics));
    let overrides = OverrideStore::open(Arc::clone(&limiter), &settings, None).await;
    let overrides = Arc::new(overrides.expect("no overrides"));
    let (identity, readiness) = (Identity::new("node", PEER), Arc::new(Readiness::default()));
    readiness.set_ready();
    let node = NodeContext::new(limiter, overrides, source, identity, setup.info, readiness);
    let traces = Traces::start(&environment, "node", settings.traced_decisions);
    let (reloads, _requests) = ReloadRequests::new();
    Arc::new(Service::new(Arc::new(node), Guard::new(settings.tokens), reloads, traces))
}

pub(crate) fn front_end_counters(scheme: &'static str) -> Arc<FrontEndCounters> {
    Metrics::new(Exhausted::Local, Arc::default()).front_ends().listen(scheme)
}

//! Settings of `tollgate serve`. Precedence: flag, environment variable, settings file, default.

mod allowed_hosts;
pub(crate) mod args;
mod checks;
mod environment;
mod file;
mod forward_auth;
mod global_limit;
mod node_id;
mod protection;
mod redis;
mod store_choice;
mod tls;
mod tokens;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tollgate::{AtCap, DEFAULT_MAX_KEYS, HeaderStyle, Limit};

use crate::access::RoleTokens;
use crate::error::SettingsError;
pub(crate) use allowed_hosts::AllowedHosts;
use args::ServeArgs;
use checks::{address, count_up_to, within};
pub(crate) use environment::Environment;
pub(crate) use file::SettingsFile;
pub(crate) use forward_auth::ForwardAuthSettings;
use protection::Listeners;
pub(crate) use redis::RedisSettings;
pub(crate) use store_choice::StoreChoice;
pub(crate) use tls::TlsSettings;

/// The flag of the gRPC listener.
pub(crate) const GRPC: &str = "--grpc";
const DEFAULT_HTTP: &str = "127.0.0.1:8080";
/// The flag of the listener for Redis clients.
pub(crate) const RESP: &str = "--resp";
const DEFAULT_MAX_CONNECTIONS: usize = 10_000;
const MAX_CONNECTIONS: usize = 1_000_000;
const MAX_KEYS: usize = 1_000_000_000;
const MAX_DRAIN_MS: u64 = 600_000;
const DEFAULT_DRAIN: Duration = Duration::from_millis(500);

/// Validated settings of `tollgate serve`.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) http: SocketAddr,
    pub(crate) admin: Option<SocketAddr>,
    pub(crate) grpc: Option<SocketAddr>,
    /// Style of the headers in gRPC responses; `None` for no headers.
    pub(crate) grpc_headers: Option<HeaderStyle>,
    pub(crate) forward_auth: ForwardAuthSettings,
    pub(crate) allowed_hosts: AllowedHosts,
    /// The listener for Redis clients.
    pub(crate) resp: Option<SocketAddr>,
    pub(crate) policy: Option<PathBuf>,
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) bad_state: BadState,
    pub(crate) node_id: String,
    pub(crate) max_keys: usize,
    pub(crate) at_cap: AtCap,
    pub(crate) max_connections: usize,
    pub(crate) drain: Duration,
    pub(crate) default_limit: Limit,
    pub(crate) store: StoreChoice,
    pub(crate) redis: RedisSettings,
    pub(crate) tokens: RoleTokens,
    pub(crate) traced_decisions: TracedDecisions,
    /// Warnings about listeners without authentication, which `--allow-unprotected` permits.
    pub(crate) unprotected: Vec<String>,
    pub(crate) tls: Option<TlsSettings>,
}

/// Which decisions get a span when traces are enabled. A span often costs more than the decision itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TracedDecisions {
    /// Only those whose caller sampled the request (`traceparent`).
    CallerSampled,
    /// Every decision.
    All,
}

impl TracedDecisions {
    /// Creates it from `--trace-decisions`; the default is `CallerSampled`.
    const fn of(all: Option<bool>) -> Self {
        match all {
            Some(true) => Self::All,
            Some(false) | None => Self::CallerSampled,
        }
    }
}

/// Action when the saved state cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadState {
    /// Refuse to start.
    Refuse,
    /// Rename it and start empty.
    PutAside,
}

impl Settings {
    /// Combines and validates flags, environment and file. `front_ends` are further listeners for decisions, by the
    /// setting of their address.
    pub(crate) fn resolve(
        args: ServeArgs,
        file: SettingsFile,
        environment: &Environment,
        front_ends: &[(&str, SocketAddr)],
    ) -> Result<Self, SettingsError> {
        let redis = RedisSettings::of(&args, &file)?;
        let tls = TlsSettings::of(&args, &file)?;
        let forward_auth = ForwardAuthSettings::of(&args, &file)?;
        let allowed_hosts = AllowedHosts::of(&args, &file)?;
        let http = address("--http", args.http.or(file.http).as_deref().unwrap_or(DEFAULT_HTTP))?;
        let admin = args.admin.or(file.admin);
        let admin = admin.map(|text| address("--admin", &text)).transpose()?;
        let grpc = args.grpc.or(file.grpc);
        let grpc = grpc.map(|text| address(GRPC, &text)).transpose()?;
        let resp = args.resp.or(file.resp);
        let resp = resp.map(|text| address(RESP, &text)).transpose()?;
        let further = [grpc.map(|address| (GRPC, address)), resp.map(|address| (RESP, address))];
        let front_ends: Vec<_> =
            front_ends.iter().copied().chain(further.into_iter().flatten()).collect();
        let allow_unprotected = args.allow_unprotected.or(file.allow_unprotected).unwrap_or(false);
        let tokens = tokens::from_environment(environment)?;
        let listeners = Listeners { http, admin, tls: tls.as_ref(), front_ends: &front_ends };
        let unprotected = listeners.unprotected(&tokens);
        if let Some(first) = unprotected.first().filter(|_| !allow_unprotected) {
            return Err(first.error());
        }
        let unprotected = unprotected.iter().map(ToString::to_string).collect();
        let drain = within("--drain-ms", args.drain_ms.or(file.drain_ms), 0..=MAX_DRAIN_MS)?;
        let drain = drain.map(Duration::from_millis);
        let node_id = args.node_id.or(file.node_id);
        let store = StoreChoice::of(args.redis, file.redis, environment)?;
        check_required(&store, &redis)?;
        let discard = args.discard_bad_state.or(file.discard_bad_state).unwrap_or(false);
        Ok(Self {
            http,
            admin,
            grpc,
            grpc_headers: args.grpc_headers.or(file.grpc_headers).unwrap_or_default().style(),
            forward_auth,
            allowed_hosts,
            resp,
            policy: args.policy.or(environment.path("RATE_LIMIT_RULES_PATH")).or(file.policy),
            data_dir: args.data_dir.or(file.data_dir),
            bad_state: if discard { BadState::PutAside } else { BadState::Refuse },
            node_id: node_id
                .map_or_else(|| Ok(node_id::default_id(http)), |id| node_id::valid_id(&id))?,
            max_keys: count_up_to("--max-keys", args.max_keys.or(file.max_keys), MAX_KEYS)?
                .unwrap_or(DEFAULT_MAX_KEYS),
            at_cap: args.at_cap.or(file.at_cap).map_or(AtCap::default(), Into::into),
            max_connections: count_up_to(
                "--max-connections",
                args.max_connections.or(file.max_connections),
                MAX_CONNECTIONS,
            )?
            .unwrap_or(DEFAULT_MAX_CONNECTIONS),
            drain: drain.unwrap_or(DEFAULT_DRAIN),
            default_limit: global_limit::from_environment(environment)?,
            store,
            redis,
            tokens,
            traced_decisions: TracedDecisions::of(args.trace_decisions.or(file.trace_decisions)),
            unprotected,
            tls,
        })
    }
}

/// Rejects `--require-redis` without a Redis: its user expects that the counters are shared.
fn check_required(store: &StoreChoice, redis: &RedisSettings) -> Result<(), SettingsError> {
    match store {
        StoreChoice::Memory { why } if redis.is_required => Err(SettingsError::new(
            "--require-redis",
            format!("the counters are in memory: {why}; set --redis, or remove --require-redis"),
        )),
        StoreChoice::Memory { .. } | StoreChoice::Redis { .. } => Ok(()),
    }
}

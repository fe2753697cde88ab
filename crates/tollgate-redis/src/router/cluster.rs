//! Redis Cluster: each slot has its server, and slots migrate.
//!
//! A call goes to the known owner of its slot. A node that replies with a redirection has not run the call;
//! the call is then sent to the node in that reply. A call that may have run is never sent again.

mod redirect;
mod routed_call;
mod topology;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use super::{ProgramRunner, Request, Scripting};
use crate::address::{HostPort, Login};
use crate::connection::{Endpoint, ServerInfo, Target, Tls};
use crate::failure::Failure;
use crate::link::{Link, LinkLimits, OnReply};
use crate::resp::Command;
use crate::script::Programs;
use crate::slot::Slot;
use redirect::Redirect;
use routed_call::RoutedCall;
use topology::{Member, Topology, parse_slots};

/// Maximum number of redirections of one call. Retries after a delay are limited only by its deadline.
const MAX_REDIRECTS: usize = 16;

/// Delay before a retry of a call that a node cannot run yet.
const RETRY_DELAY: Duration = Duration::from_millis(10);

/// Maximum age of the topology before a refresh.
const MAX_TOPOLOGY_AGE: Duration = Duration::from_secs(15);

/// The settings for all nodes of a cluster.
#[derive(Debug)]
pub(crate) struct NodeSettings {
    pub(crate) login: Option<Login>,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) limits: LinkLimits,
    pub(crate) programs: Arc<Programs>,
    pub(crate) scripting: Scripting,
}

/// A cluster and its known topology.
#[derive(Debug)]
pub(crate) struct Cluster {
    settings: NodeSettings,
    seeds: Vec<HostPort>,
    topology: Mutex<Topology>,
    refreshed_at: Mutex<Option<Instant>>,
    is_refreshing: AtomicBool,
}

/// [`ProgramRunner::send`] or [`ProgramRunner::send_asking`].
type Send = fn(&Arc<ProgramRunner>, Request, OnReply);

impl NodeSettings {
    fn target(&self, host_port: &HostPort) -> Target {
        let endpoint = Endpoint::new(host_port.clone(), self.tls.as_ref());
        Target { endpoint, login: self.login.clone(), database: 0 }
    }

    fn runner(&self, host_port: &HostPort) -> ProgramRunner {
        let link = Link::new(self.target(host_port), self.limits);
        ProgramRunner::new(link, Arc::clone(&self.programs), self.scripting)
    }
}

impl Cluster {
    pub(crate) fn new(seeds: Vec<HostPort>, settings: NodeSettings) -> Self {
        let mut topology = Topology::new();
        for seed in &seeds {
            topology.member(seed, |host_port| settings.runner(host_port));
        }
        let (topology, refreshed_at) = (Mutex::new(topology), Mutex::default());
        let is_refreshing = AtomicBool::new(false);
        Self { settings, seeds, topology, refreshed_at, is_refreshing }
    }

    /// Sends a request to the owner of a slot. `on_reply` is called once and must not block.
    pub(crate) fn send(self: &Arc<Self>, slot: Slot, request: Request, on_reply: OnReply) {
        let deadline = Instant::now() + self.settings.limits.reply_timeout;
        let call = RoutedCall::new(slot, request, deadline, on_reply);
        if self.is_outdated() {
            self.refresh_in_background();
        }
        self.route(call);
    }

    fn route(self: &Arc<Self>, call: RoutedCall) {
        let member = {
            let topology = self.topology.lock();
            topology.owner(call.slot).or_else(|| topology.any_member())
        };
        match member {
            Some(member) => self.send_to(&member, call, ProgramRunner::send),
            None => call.finish(Err(no_known_node())),
        }
    }

    fn send_to(self: &Arc<Self>, member: &Arc<Member>, call: RoutedCall, send: Send) {
        let this = Arc::clone(self);
        let (request, host_port) = (call.request.clone(), member.host_port.clone());
        let on_reply: OnReply = Box::new(move |result| match result {
            Err(failure) => this.redirect(call, failure, &host_port),
            reply => call.finish(reply),
        });
        send(&member.runner, request, on_reply);
    }

    /// Redirects or retries a call that has not run, until its deadline.
    fn redirect(self: &Arc<Self>, mut call: RoutedCall, failure: Failure, sender: &HostPort) {
        let redirect = Redirect::of(&failure, sender);
        if matches!(failure, Failure::Lost(_) | Failure::Timeout) {
            self.refresh_in_background();
        }
        let has_time = Instant::now() < call.deadline && call.redirects < MAX_REDIRECTS;
        let Some(redirect) = redirect.filter(|_| has_time) else {
            return call.finish(Err(failure));
        };
        call.redirects += usize::from(redirect != Redirect::Later);
        match redirect {
            Redirect::Moved { slot, to } => {
                let member = self.member(&to);
                self.topology.lock().assign(slot.unwrap_or(call.slot), Arc::clone(&member));
                self.refresh_in_background();
                self.send_to(&member, call, ProgramRunner::send);
            }
            Redirect::Ask { to } => {
                self.send_to(&self.member(&to), call, ProgramRunner::send_asking);
            }
            Redirect::Later => {
                self.refresh_in_background();
                let this = Arc::clone(self);
                let retry = async move {
                    sleep(RETRY_DELAY).await;
                    this.route(call);
                };
                // Without a runtime, the drop of the call fails it.
                drop(Handle::try_current().map(|runtime| runtime.spawn(retry)));
            }
        }
    }

    fn member(&self, host_port: &HostPort) -> Arc<Member> {
        self.topology.lock().member(host_port, |host_port| self.settings.runner(host_port))
    }

    fn is_outdated(&self) -> bool {
        self.refreshed_at.lock().is_none_or(|at| at.elapsed() > MAX_TOPOLOGY_AGE)
    }

    /// Refreshes the topology in the background, unless a refresh is running.
    fn refresh_in_background(self: &Arc<Self>) {
        if self.is_refreshing.swap(true, Ordering::AcqRel) {
            return;
        }
        let guard = RefreshGuard(Arc::clone(self));
        let refresh = async move { drop(guard.0.refresh().await) };
        // Calls that fail because their runtime shuts down end here too, without a runtime.
        drop(Handle::try_current().map(|runtime| runtime.spawn(refresh)));
    }

    /// Reads the slot owners from the first node that knows them.
    async fn refresh(&self) -> Result<(), Failure> {
        let mut last_failure = no_known_node();
        let mut members = self.topology.lock().members();
        members.extend(self.seeds.iter().map(|seed| self.member(seed)));
        for member in members {
            let command = Command::new("CLUSTER").arg("SLOTS");
            let reply = member.runner.link().request(command).await;
            match reply.map(|reply| parse_slots(&reply, &member.host_port)) {
                Ok(Some(ranges)) if !ranges.is_empty() => {
                    let runner = |host_port: &HostPort| self.settings.runner(host_port);
                    self.topology.lock().update(&ranges, runner);
                    *self.refreshed_at.lock() = Some(Instant::now());
                    return Ok(());
                }
                Ok(_) => last_failure = not_a_cluster(&member.host_port),
                Err(failure) => last_failure = failure,
            }
        }
        Err(last_failure)
    }

    /// Checks that all primaries of the cluster can be reached.
    pub(crate) async fn open(&self) -> Result<Option<ServerInfo>, Failure> {
        // A first connection may take the whole connect timeout, which exceeds the reply timeout.
        for seed in &self.seeds {
            if self.member(seed).runner.link().open().await.is_ok() {
                break;
            }
        }
        self.refresh().await?;
        let mut info = None;
        let primaries = self.topology.lock().primaries();
        for member in primaries {
            info = info.or(member.runner.link().open().await?);
        }
        Ok(info)
    }

    /// Returns the links to all primaries, in an order that is stable while the cluster does not change.
    pub(crate) async fn links(&self) -> Result<Vec<Link>, Failure> {
        if self.is_outdated() {
            self.refresh().await?;
        }
        let primaries = self.topology.lock().primaries();
        Ok(primaries.iter().map(|member| member.runner.link().clone()).collect())
    }
}

/// Marks a refresh as running until dropped, also if its runtime shuts down.
struct RefreshGuard(Arc<Cluster>);

impl Drop for RefreshGuard {
    fn drop(&mut self) {
        self.0.is_refreshing.store(false, Ordering::Release);
    }
}

fn no_known_node() -> Failure {
    Failure::Unreachable("no node of the cluster is known".to_owned())
}

fn not_a_cluster(host_port: &HostPort) -> Failure {
    Failure::Unreachable(format!("Redis at {host_port} is not a node of a cluster with slots"))
}

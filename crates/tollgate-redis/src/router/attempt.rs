//! A request in progress: each step sends it and decides, by its reply, whether to send it again.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::cluster::Cluster;
use super::completion::Completion;
use super::redirect::Redirect;
use super::server::{Reload, Server};
use crate::call::{Call, Invocation};
use crate::failure::Failure;
use crate::link::SendGate;
use crate::resp::{Command, Reply};
use crate::slot::Slot;
use crate::sync::Handle;

/// Maximum number of immediate redirections of one request. Nodes that redirect it more often disagree, and it is
/// retried after a delay. Such retries are limited only by its deadline.
const MAX_REDIRECTS: usize = 16;

/// Delay before a retry of a request that a node cannot run yet.
const RETRY_DELAY: Duration = Duration::from_millis(10);

/// A request to a server.
#[derive(Debug)]
pub(super) enum Request {
    Program(Call),
    Command(Command),
}

/// A request, the server that it is sent to, how, and the callback for its reply.
pub(super) struct Attempt<F: FnOnce(Result<Reply, Failure>)> {
    server: Arc<Server>,
    /// The cluster of the server, if it is a node of one.
    cluster: Option<Arc<Cluster>>,
    slot: Slot,
    request: Request,
    completion: Completion<F>,
    invocation: Invocation,
    /// Whether to send `ASKING` first: the slot is migrating to this node.
    is_asking: bool,
    /// Number of library loads on this server.
    loads: usize,
    redirects: usize,
    /// Redirections end here. `None` without redirections.
    deadline: Option<Instant>,
    /// The gate through which the caller may withdraw the request.
    gate: Option<Arc<SendGate>>,
}

/// What to do before a request that has not run is sent again.
#[derive(Debug, PartialEq, Eq)]
enum Repeat {
    Reload(Reload),
    Redirect(Redirect),
}

impl<F: FnOnce(Result<Reply, Failure>) + Send + 'static> Attempt<F> {
    pub(super) fn new(
        server: Arc<Server>,
        slot: Slot,
        request: Request,
        completion: Completion<F>,
    ) -> Self {
        Self {
            invocation: server.invocation(),
            server,
            cluster: None,
            slot,
            request,
            completion,
            is_asking: false,
            loads: 0,
            redirects: 0,
            deadline: None,
            gate: None,
        }
    }

    /// Sets the gate through which the caller may withdraw the request.
    pub(super) fn through(self, gate: Arc<SendGate>) -> Self {
        Self { gate: Some(gate), ..self }
    }

    /// Sets the cluster of the server, for a request without a slot: no other node can run it.
    pub(super) fn on_node_of(self, cluster: &Arc<Cluster>) -> Self {
        Self { cluster: Some(Arc::clone(cluster)), ..self }
    }

    /// Sets the cluster of the server. Its nodes may redirect the request.
    pub(super) fn within(self, cluster: &Arc<Cluster>) -> Self {
        let deadline = Some(Instant::now() + self.server.link().reply_timeout());
        Self { cluster: Some(Arc::clone(cluster)), deadline, ..self }
    }

    /// Sends the request. The driver of the link continues it with the reply.
    pub(super) fn send(self) {
        let command = match &self.request {
            Request::Program(call) => self.server.command(call, self.invocation),
            Request::Command(command) => command.clone(),
        };
        let (command, server) = (command.asking(self.is_asking), Arc::clone(&self.server));
        let gate = self.gate.clone();
        server.link().send_through(command, gate, Box::new(move |result| self.receive(result)));
    }

    fn receive(self, result: Result<Reply, Failure>) {
        match result {
            Ok(reply) => self.completion.complete(Ok(reply)),
            Err(failure) => self.fail_or_repeat(failure),
        }
    }

    fn fail_or_repeat(self, failure: Failure) {
        if let Some(cluster) = &self.cluster
            && matches!(failure, Failure::Lost(_) | Failure::Timeout)
        {
            cluster.refresh_in_background();
        }
        let failure = match self.redirects < MAX_REDIRECTS {
            true => failure,
            false => Redirect::explain_excess(failure),
        };
        let repeat = self.repeat_after(&failure);
        if let (Some(_), Some(gate)) = (&repeat, &self.gate) {
            if repeat == Some(Repeat::Redirect(Redirect::Later)) {
                gate.refuse(failure.clone());
            }
            gate.mark_unsent();
        }
        match repeat {
            Some(Repeat::Reload(reload)) => self.reload(reload),
            Some(Repeat::Redirect(redirect)) => self.redirect(redirect),
            None => self.completion.complete(Err(failure)),
        }
    }

    /// Returns how to repeat the request if the failure proves that it has not run. `None` if it may have run, or a
    /// repetition does not help. Nothing else decides to send a request again.
    fn repeat_after(&self, failure: &Failure) -> Option<Repeat> {
        if let Request::Program(_) = self.request
            && let Some(reload) = self.server.reload(self.invocation, self.loads, failure)
        {
            return Some(Repeat::Reload(reload));
        }
        let redirect = Redirect::of(failure, self.server.host_port()?)?;
        let has_time = self.deadline.is_some_and(|deadline| Instant::now() < deadline);
        has_time.then_some(Repeat::Redirect(redirect))
    }

    fn reload(mut self, reload: Reload) {
        match reload {
            Reload::Text => self.invocation = Invocation::Text,
            Reload::Scripts => {
                self.server.use_scripts();
                self.invocation = Invocation::Hash;
            }
            Reload::Library => return self.load_library(),
        }
        self.send();
    }

    /// Loads the library, unless another client has loaded it, and repeats the call.
    fn load_library(mut self) {
        self.loads += 1;
        let (command, server) = (self.server.load_library(), Arc::clone(&self.server));
        let on_reply = move |result| match result {
            Err(failure) if !Failure::is_known_library(&failure) => self.fail_or_repeat(failure),
            _ => self.send(),
        };
        server.link().send(command, Box::new(on_reply));
    }

    fn redirect(mut self, redirect: Redirect) {
        // Dropped, an attempt fails. Only a node of a cluster redirects.
        let Some(cluster) = self.cluster.clone() else { return };
        match redirect {
            Redirect::Moved { slot, to } => {
                self.redirect_to(cluster.assign(slot.unwrap_or(self.slot), &to));
            }
            Redirect::Ask { to } => {
                self.redirect_to(cluster.member(&to));
                self.is_asking = true;
            }
            Redirect::Later => return self.retry_later(cluster),
        }
        self.send();
    }

    /// Retries on the owner of the slot, after a delay in which the topology is refreshed.
    fn retry_later(mut self, cluster: Arc<Cluster>) {
        cluster.refresh_in_background();
        let retry = async move {
            sleep(RETRY_DELAY).await;
            match cluster.server_of(self.slot) {
                Ok(server) => {
                    self.set_server(server);
                    self.send();
                }
                Err(failure) => self.completion.complete(Err(failure)),
            }
        };
        // Without a runtime, the drop of the attempt fails it.
        drop(Handle::try_current().map(|runtime| runtime.spawn(retry)));
    }

    fn redirect_to(&mut self, server: Arc<Server>) {
        self.set_server(server);
        self.redirects += 1;
    }

    fn set_server(&mut self, server: Arc<Server>) {
        self.invocation = server.invocation();
        (self.server, self.is_asking, self.loads) = (server, false, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{LONG, address, long_timeouts};
    use crate::link::Link;
    use crate::router::Scripting;
    use crate::script::{Entry, Programs, TimeSource};

    fn server(scripting: Scripting) -> Server {
        let link = Link::new(address(1), long_timeouts());
        Server::new(link, Arc::new(Programs::new(TimeSource::Server)), scripting)
    }

    fn attempt(server: Server) -> Attempt<fn(Result<Reply, Failure>)> {
        let call = Call { entry: Entry::Nodes, keys: Vec::new(), arguments: Vec::new() };
        let completion = Completion::new((|_| {}) as fn(Result<Reply, Failure>));
        Attempt::new(Arc::new(server), Slot::ONLY, Request::Program(call), completion)
    }

    fn node(scripting: Scripting) -> Server {
        server(scripting).at(crate::address::HostPort { host: "here".to_owned(), port: 1 })
    }

    fn refused(text: &str) -> Failure {
        Failure::refused(text.as_bytes())
    }

    #[test]
    fn a_call_that_may_have_run_is_not_repeated() {
        let lost = || Failure::Lost("cut".to_owned());
        for scripting in [Scripting::Auto, Scripting::Script, Scripting::Function] {
            for server in [server(scripting), node(scripting)] {
                let mut attempt = attempt(server);
                for invocation in [Invocation::Function, Invocation::Hash, Invocation::Text] {
                    attempt.invocation = invocation;
                    for failure in [lost(), Failure::Timeout, refused("ERR x"), refused("OOM x")] {
                        assert_eq!(
                            attempt.repeat_after(&failure),
                            None,
                            "{invocation:?} {failure}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_missing_program_is_loaded_and_called_again() {
        let after = |scripting, loads, failure: &Failure| {
            Attempt { loads, ..attempt(server(scripting)) }.repeat_after(failure)
        };
        let reload = |reload| Some(Repeat::Reload(reload));
        let unknown_script = refused("NOSCRIPT No matching script");
        let unknown_function = refused("ERR Function not found");
        let denied = refused("NOPERM x");
        assert_eq!(after(Scripting::Script, 0, &unknown_script), reload(Reload::Text));
        assert_eq!(after(Scripting::Auto, 0, &unknown_function), reload(Reload::Library));
        assert_eq!(after(Scripting::Auto, 1, &unknown_function), reload(Reload::Text));
        assert_eq!(after(Scripting::Function, 7, &unknown_function), reload(Reload::Library));
        assert_eq!(after(Scripting::Function, 8, &unknown_function), None);
        assert_eq!(after(Scripting::Auto, 0, &denied), reload(Reload::Scripts));
        assert_eq!(after(Scripting::Function, 0, &denied), None);
        // The text of a script cannot be unknown.
        let mut attempt = attempt(server(Scripting::Script));
        attempt.invocation = Invocation::Text;
        assert_eq!(attempt.repeat_after(&unknown_script), None);
    }

    #[test]
    fn only_a_node_of_a_cluster_redirects_until_the_deadline() {
        let moved = refused("MOVED 3999 10.0.0.1:6381");
        assert_eq!(attempt(server(Scripting::Auto)).repeat_after(&moved), None);
        let mut attempt = attempt(node(Scripting::Auto));
        attempt.deadline = Some(Instant::now() + LONG);
        assert!(matches!(attempt.repeat_after(&moved), Some(Repeat::Redirect(_))));
        attempt.deadline = Some(Instant::now());
        assert_eq!(attempt.repeat_after(&moved), None);
    }
}

//! An attempt to run a request on a server, and the only place that decides to send it again.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::time::Instant;

use super::redirect::Redirect;
use super::server::{Reload, Server};
use crate::call::{Call, Invocation};
use crate::failure::Failure;
use crate::resp::{Command, Reply};
use crate::slot::Slot;

/// Maximum number of redirections of one request. Retries after a delay are limited only by its deadline.
const MAX_REDIRECTS: usize = 16;

/// A request to a server.
#[derive(Debug)]
pub(super) enum Request {
    Program(Call),
    Command(Command),
}

/// A request, the server that it is sent to, and how.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) slot: Slot,
    request: Request,
    pub(super) server: Arc<Server>,
    pub(super) invocation: Invocation,
    /// Whether to send `ASKING` first: the slot is migrating to this node.
    is_asking: bool,
    /// Number of library loads on this server.
    pub(super) loads: usize,
    redirects: usize,
    /// Redirections end here.
    deadline: Instant,
}

/// What to do before a request that has not run is sent again.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    Reload(Reload),
    Redirect(Redirect),
}

impl Attempt {
    pub(super) fn new(slot: Slot, request: Request, server: Arc<Server>) -> Self {
        let deadline = Instant::now() + server.link().reply_timeout();
        let invocation = server.invocation();
        let (is_asking, loads, redirects) = (false, 0, 0);
        Self { slot, request, server, invocation, is_asking, loads, redirects, deadline }
    }

    pub(super) fn command(&self) -> Command {
        let command = match &self.request {
            Request::Program(call) => self.server.command(call, self.invocation),
            Request::Command(command) => command.clone(),
        };
        command.asking(self.is_asking)
    }

    /// Sends the request now. The future is its reply.
    pub(super) fn send(&self) -> impl Future<Output = Result<Reply, Failure>> + use<> {
        self.server.link().begin(self.command())
    }

    /// Returns how to repeat the request if the failure proves that it has not run. `None` if it may have run, or a
    /// repetition does not help.
    pub(super) fn repeat_after(&self, failure: &Failure) -> Option<Repeat> {
        if let Request::Program(_) = self.request
            && let Some(reload) = self.server.reload(self.invocation, self.loads, failure)
        {
            return Some(Repeat::Reload(reload));
        }
        let redirect = Redirect::of(failure, self.server.host_port()?)?;
        let has_time = self.redirects < MAX_REDIRECTS && Instant::now() < self.deadline;
        // A delay needs a runtime.
        let is_possible = redirect != Redirect::Later || Handle::try_current().is_ok();
        (has_time && is_possible).then_some(Repeat::Redirect(redirect))
    }

    /// Sets the server that has the slot now.
    pub(super) fn retry_on(&mut self, server: Arc<Server>) {
        self.invocation = server.invocation();
        (self.server, self.is_asking, self.loads) = (server, false, 0);
    }

    /// Sets the server that a redirection names.
    pub(super) fn redirect_to(&mut self, server: Arc<Server>, is_asking: bool) {
        self.retry_on(server);
        self.is_asking = is_asking;
        self.redirects += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{address, long_timeouts};
    use crate::link::Link;
    use crate::router::Scripting;
    use crate::script::{Entry, Programs, TimeSource};

    fn server(scripting: Scripting) -> Server {
        let link = Link::new(address(1), long_timeouts());
        Server::new(link, Arc::new(Programs::new(TimeSource::Server)), scripting)
    }

    fn attempt(server: Server) -> Attempt {
        let call = Call { entry: Entry::Nodes, keys: Vec::new(), arguments: Vec::new() };
        Attempt::new(Slot::ONLY, Request::Program(call), Arc::new(server))
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
                        assert_eq!(attempt.repeat_after(&failure), None, "{attempt:?} {failure}");
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
    fn only_a_node_of_a_cluster_redirects_and_not_forever() {
        let moved = refused("MOVED 3999 10.0.0.1:6381");
        assert_eq!(attempt(server(Scripting::Auto)).repeat_after(&moved), None);
        let mut attempt = attempt(node(Scripting::Auto));
        for _ in 0..MAX_REDIRECTS {
            assert!(matches!(attempt.repeat_after(&moved), Some(Repeat::Redirect(_))));
            attempt.redirect_to(Arc::new(node(Scripting::Auto)), false);
        }
        assert_eq!(attempt.repeat_after(&moved), None);
        attempt.redirects = 0;
        assert!(attempt.repeat_after(&moved).is_some());
        attempt.deadline = Instant::now();
        assert_eq!(attempt.repeat_after(&moved), None);
    }
}

//! One server: its link, and how it runs Lua programs.

use std::sync::Arc;

use super::node_batching::NodeBatching;
use crate::address::HostPort;
use crate::call::{Call, Invocation};
use crate::failure::Failure;
use crate::link::Link;
use crate::resp::Command;
use crate::script::Programs;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How the server runs Lua programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Scripting {
    /// As functions if the server has them (Redis 7, Valkey) and the user may load them, else as scripts.
    #[default]
    Auto,
    /// As scripts, which every server supports.
    Script,
    /// As functions only.
    Function,
}

/// Maximum number of library loads for one call with [`Scripting::Function`].
const MAX_LOADS: usize = 8;

/// One server and the way it runs programs.
#[derive(Debug)]
pub(crate) struct Server {
    link: Link,
    /// Set for a node of a cluster.
    host_port: Option<HostPort>,
    programs: Arc<Programs>,
    scripting: Scripting,
    /// Whether the server has no functions, or denies them to this user.
    lacks_functions: AtomicBool,
    node_batching: NodeBatching,
    /// Number of plans that wait to be sent to this server.
    waiting_plans: AtomicUsize,
}

/// How to call a program that the server has not run, because it does not have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reload {
    /// Send the text of the script.
    Text,
    /// Load the library first.
    Library,
    /// Use scripts in place of functions, from now on.
    Scripts,
}

impl Server {
    pub(crate) fn new(link: Link, programs: Arc<Programs>, scripting: Scripting) -> Self {
        let lacks_functions = AtomicBool::new(scripting == Scripting::Script);
        Self {
            link,
            host_port: None,
            programs,
            scripting,
            lacks_functions,
            node_batching: NodeBatching::default(),
            waiting_plans: AtomicUsize::new(0),
        }
    }

    /// Sets the host and port of a node of a cluster.
    pub(super) fn at(self, host_port: HostPort) -> Self {
        Self { host_port: Some(host_port), ..self }
    }

    pub(crate) const fn link(&self) -> &Link {
        &self.link
    }

    pub(super) const fn waiting_plans(&self) -> &AtomicUsize {
        &self.waiting_plans
    }

    /// Whether calls to a node of a cluster may contain several slots.
    pub(super) const fn node_batching(&self) -> &NodeBatching {
        &self.node_batching
    }

    /// Returns the host and port of a node of a cluster.
    pub(super) const fn host_port(&self) -> Option<&HostPort> {
        self.host_port.as_ref()
    }

    /// Returns the first invocation of a call.
    pub(super) fn invocation(&self) -> Invocation {
        match self.lacks_functions.load(Ordering::Relaxed) {
            true => Invocation::Hash,
            false => Invocation::Function,
        }
    }

    pub(super) fn command(&self, call: &Call, invocation: Invocation) -> Command {
        call.command(invocation, &self.programs)
    }

    /// Returns how to repeat a call if the failure proves that the server does not have the program. `loads` is the
    /// number of library loads for this call. If the server loses the library repeatedly, `Auto` sends the text of
    /// the script instead.
    pub(super) fn reload(
        &self,
        invocation: Invocation,
        loads: usize,
        failure: &Failure,
    ) -> Option<Reload> {
        match invocation {
            Invocation::Hash => failure.is_unknown_script().then_some(Reload::Text),
            Invocation::Function if failure.is_unknown_function() => {
                match (loads, self.scripting) {
                    (0, _) | (..MAX_LOADS, Scripting::Function) => Some(Reload::Library),
                    (_, Scripting::Function) => None,
                    (_, Scripting::Auto | Scripting::Script) => Some(Reload::Text),
                }
            }
            Invocation::Function if failure.is_without_functions() => {
                (self.scripting == Scripting::Auto).then_some(Reload::Scripts)
            }
            Invocation::Function | Invocation::Text => None,
        }
    }

    /// Calls all programs as scripts from now on.
    pub(super) fn use_scripts(&self) {
        self.lacks_functions.store(true, Ordering::Relaxed);
    }

    /// Returns the command that loads the library.
    pub(super) fn load_library(&self) -> Command {
        Command::new("FUNCTION").arg("LOAD").arg(self.programs.library().text())
    }
}

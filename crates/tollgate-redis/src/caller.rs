//! Calls programs on one server, which may not know them yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::call::{Call, Naming};
use crate::failure::Failure;
use crate::link::{Link, Then};
use crate::resp::Command;
use crate::script::Programs;

/// How programs reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Scripting {
    /// As functions where the server has them (Redis 7, Valkey) and lets us load them, else as scripts.
    #[default]
    Auto,
    /// As scripts, which every server has.
    Script,
    /// As functions, or not at all.
    Function,
}

/// How often the library is loaded for one call, where there is no other way.
const MOST_LOADS: usize = 8;

/// One server and how it is called.
#[derive(Debug)]
pub(crate) struct Caller {
    link: Link,
    programs: Arc<Programs>,
    scripting: Scripting,
    /// Whether the server was found to have no functions for us.
    lacks_functions: AtomicBool,
}

/// What is to be sent.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    Program(Arc<Call>),
    Plain(Command),
}

/// A call under way.
struct Pending {
    call: Arc<Call>,
    /// Whether a node of a cluster is asked for a slot that is on its way to it.
    asking: bool,
    naming: Naming,
    /// How often the library has been loaded for it.
    loads: usize,
    then: Then,
}

impl Caller {
    pub(crate) fn new(link: Link, programs: Arc<Programs>, scripting: Scripting) -> Self {
        let lacks_functions = AtomicBool::new(scripting == Scripting::Script);
        Self { link, programs, scripting, lacks_functions }
    }

    pub(crate) const fn link(&self) -> &Link {
        &self.link
    }

    /// Sends a command, or calls a program. `then` is told once, as [`Link::send`] does it. A program that the
    /// server does not know it has not run: it is told, and called again.
    pub(crate) fn send(self: &Arc<Self>, work: Work, then: Then) {
        self.dispatch(work, false, then);
    }

    /// The same to a node of a cluster, about a slot that is on its way to it.
    pub(crate) fn send_asking(self: &Arc<Self>, work: Work, then: Then) {
        self.dispatch(work, true, then);
    }

    fn dispatch(self: &Arc<Self>, work: Work, asking: bool, then: Then) {
        let naming = match self.lacks_functions.load(Ordering::Relaxed) {
            true => Naming::Hash,
            false => Naming::Function,
        };
        match work {
            Work::Plain(command) => self.link.send(command.asking(asking), then),
            Work::Program(call) => {
                self.call(Pending { call, asking, naming, loads: 0, then });
            }
        }
    }

    fn call(self: &Arc<Self>, pending: Pending) {
        let command = pending.call.command(pending.naming, &self.programs).asking(pending.asking);
        let this = Arc::clone(self);
        let then: Then = Box::new(move |result| match (pending.naming, result) {
            (Naming::Hash, Err(failure)) if failure.is_unknown_script() => {
                this.call(Pending { naming: Naming::Text, ..pending });
            }
            (Naming::Function, Err(failure)) if failure.is_unknown_function() => {
                this.teach(pending, failure);
            }
            (Naming::Function, Err(failure)) if failure.is_without_functions() => {
                this.do_without_functions(pending, failure);
            }
            (_, result) => (pending.then)(result),
        });
        self.link.send(command, then);
    }

    /// The server does not know the function. If it keeps forgetting, a script's text needs no memory.
    fn teach(self: &Arc<Self>, pending: Pending, failure: Failure) {
        match (pending.loads, self.scripting) {
            (0, _) | (..MOST_LOADS, Scripting::Function) => self.load(pending),
            (_, Scripting::Function) => (pending.then)(Err(failure)),
            (_, Scripting::Auto | Scripting::Script) => {
                self.call(Pending { naming: Naming::Text, ..pending });
            }
        }
    }

    /// Loads the library. Somebody else may have done so meanwhile.
    fn load(self: &Arc<Self>, pending: Pending) {
        let library = self.programs.library().text();
        let command = Command::new("FUNCTION").arg("LOAD").arg(library);
        let this = Arc::clone(self);
        let then: Then = Box::new(move |result| match result {
            Ok(_) => this.call(Pending { loads: pending.loads + 1, ..pending }),
            Err(failure) if failure.is_known_library() => {
                this.call(Pending { loads: pending.loads + 1, ..pending });
            }
            Err(failure) if failure.is_without_functions() => {
                this.do_without_functions(pending, failure);
            }
            Err(failure) => (pending.then)(Err(failure)),
        });
        self.link.send(command, then);
    }

    /// Falls back to scripts, if we may.
    fn do_without_functions(self: &Arc<Self>, pending: Pending, failure: Failure) {
        if self.scripting != Scripting::Auto {
            return (pending.then)(Err(failure));
        }
        self.lacks_functions.store(true, Ordering::Relaxed);
        self.call(Pending { naming: Naming::Hash, ..pending });
    }
}

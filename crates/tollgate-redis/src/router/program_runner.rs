//! Runs Lua programs on one server, and loads those that it does not have.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::call::{Call, Invocation};
use crate::failure::Failure;
use crate::link::{Link, OnReply};
use crate::resp::Command;
use crate::script::Programs;

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
pub(crate) struct ProgramRunner {
    link: Link,
    programs: Arc<Programs>,
    scripting: Scripting,
    /// Whether the server has no functions, or denies them to this user.
    lacks_functions: AtomicBool,
}

/// A request to a server.
#[derive(Debug, Clone)]
pub(crate) enum Request {
    Program(Arc<Call>),
    Command(Command),
}

/// A program call in progress.
struct PendingCall {
    call: Arc<Call>,
    /// Whether to send `ASKING` first: the slot of the call is migrating to this node.
    asking: bool,
    invocation: Invocation,
    /// Number of library loads for this call.
    loads: usize,
    on_reply: OnReply,
}

impl ProgramRunner {
    pub(crate) fn new(link: Link, programs: Arc<Programs>, scripting: Scripting) -> Self {
        let lacks_functions = AtomicBool::new(scripting == Scripting::Script);
        Self { link, programs, scripting, lacks_functions }
    }

    pub(crate) const fn link(&self) -> &Link {
        &self.link
    }

    /// Sends a command or calls a program. Calls `on_reply` once, like [`Link::send`]. If the server does not
    /// have the program, nothing has run: the runner loads it and calls it again.
    pub(crate) fn send(self: &Arc<Self>, request: Request, on_reply: OnReply) {
        self.dispatch(request, false, on_reply);
    }

    /// Like [`Self::send`], after `ASKING`: for a slot that is migrating to this node.
    pub(crate) fn send_asking(self: &Arc<Self>, request: Request, on_reply: OnReply) {
        self.dispatch(request, true, on_reply);
    }

    fn dispatch(self: &Arc<Self>, request: Request, asking: bool, on_reply: OnReply) {
        let invocation = match self.lacks_functions.load(Ordering::Relaxed) {
            true => Invocation::Hash,
            false => Invocation::Function,
        };
        match request {
            Request::Command(command) => self.link.send(command.asking(asking), on_reply),
            Request::Program(call) => {
                self.call(PendingCall { call, asking, invocation, loads: 0, on_reply });
            }
        }
    }

    fn call(self: &Arc<Self>, pending: PendingCall) {
        let command = pending.call.command(pending.invocation, &self.programs);
        let command = command.asking(pending.asking);
        let this = Arc::clone(self);
        let on_reply: OnReply = Box::new(move |result| match (pending.invocation, result) {
            (Invocation::Hash, Err(failure)) if failure.is_unknown_script() => {
                this.call(PendingCall { invocation: Invocation::Text, ..pending });
            }
            (Invocation::Function, Err(failure)) if failure.is_unknown_function() => {
                this.load_missing_function(pending, failure);
            }
            (Invocation::Function, Err(failure)) if failure.is_without_functions() => {
                this.fall_back_to_scripts(pending, failure);
            }
            (_, result) => (pending.on_reply)(result),
        });
        self.link.send(command, on_reply);
    }

    /// Loads the library. If the server loses it repeatedly, `Auto` sends the text of the script instead.
    fn load_missing_function(self: &Arc<Self>, pending: PendingCall, failure: Failure) {
        match (pending.loads, self.scripting) {
            (0, _) | (..MAX_LOADS, Scripting::Function) => self.load(pending),
            (_, Scripting::Function) => (pending.on_reply)(Err(failure)),
            (_, Scripting::Auto | Scripting::Script) => {
                self.call(PendingCall { invocation: Invocation::Text, ..pending });
            }
        }
    }

    /// Loads the library, unless another client has loaded it, and repeats the call.
    fn load(self: &Arc<Self>, pending: PendingCall) {
        let library = self.programs.library().text();
        let command = Command::new("FUNCTION").arg("LOAD").arg(library);
        let this = Arc::clone(self);
        let on_reply: OnReply = Box::new(move |result| match result {
            Ok(_) => this.call(PendingCall { loads: pending.loads + 1, ..pending }),
            Err(failure) if failure.is_known_library() => {
                this.call(PendingCall { loads: pending.loads + 1, ..pending });
            }
            Err(failure) if failure.is_without_functions() => {
                this.fall_back_to_scripts(pending, failure);
            }
            Err(failure) => (pending.on_reply)(Err(failure)),
        });
        self.link.send(command, on_reply);
    }

    fn fall_back_to_scripts(self: &Arc<Self>, pending: PendingCall, failure: Failure) {
        if self.scripting != Scripting::Auto {
            return (pending.on_reply)(Err(failure));
        }
        self.lacks_functions.store(true, Ordering::Relaxed);
        self.call(PendingCall { invocation: Invocation::Hash, ..pending });
    }
}

//! A call of one Lua program, and the Redis command for it.

use crate::resp::Command;
use crate::script::{Entry, Programs};

/// A program with its keys and arguments.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) entry: Entry,
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) arguments: Vec<Vec<u8>>,
}

/// The command that invokes a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Invocation {
    /// `FCALL`: a function of the library, which must be loaded first.
    Function,
    /// `EVALSHA`: a script by its hash, which the server may not have.
    Hash,
    /// `EVAL`: a script by its text. The server then caches it.
    Text,
}

impl Call {
    pub(crate) fn command(&self, invocation: Invocation, programs: &Programs) -> Command {
        let script = programs.script(self.entry);
        let function;
        let (verb, name) = match invocation {
            Invocation::Function => {
                function = programs.library().function(self.entry);
                ("FCALL", function.as_str())
            }
            Invocation::Hash => ("EVALSHA", script.hash()),
            Invocation::Text => ("EVAL", script.text()),
        };
        let parts = self.keys.iter().chain(&self.arguments);
        let bytes: usize = parts.clone().map(Vec::len).sum();
        let count = self.keys.len() + self.arguments.len() + 3;
        let command = Command::with_capacity(count, bytes + name.len() + 64).arg(verb).arg(name);
        let command = command.number(u64::try_from(self.keys.len()).unwrap_or(u64::MAX));
        parts.fold(command, Command::arg)
    }
}

//! A call of one of our programs, however the server is to be told which.

use crate::resp::Command;
use crate::script::{Entry, Programs};

/// What is to be run, on which keys, with which arguments.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) entry: Entry,
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) arguments: Vec<Vec<u8>>,
}

/// How a program is named to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    /// A function of the library, which a server may have to be given first.
    Function,
    /// A script by its hash, which a server that has lost it does not know.
    Hash,
    /// A script by its text, which also lets the server know it from then on.
    Text,
}

impl Call {
    pub(crate) fn command(&self, naming: Naming, programs: &Programs) -> Command {
        let script = programs.script(self.entry);
        let function;
        let (verb, name) = match naming {
            Naming::Function => {
                function = programs.library().function(self.entry);
                ("FCALL", function.as_str())
            }
            Naming::Hash => ("EVALSHA", script.hash()),
            Naming::Text => ("EVAL", script.text()),
        };
        let parts = self.keys.iter().chain(&self.arguments);
        let bytes: usize = parts.clone().map(Vec::len).sum();
        let count = self.keys.len() + self.arguments.len() + 3;
        let command = Command::with_capacity(count, bytes + name.len() + 64).arg(verb).arg(name);
        let command = command.number(u64::try_from(self.keys.len()).unwrap_or(u64::MAX));
        parts.fold(command, Command::arg)
    }
}

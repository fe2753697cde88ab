//! Runs of a program under `valgrind --tool=callgrind`.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::Outcome;
use crate::server::{Cores, Role};

/// A directory for the counts of one run.
#[derive(Debug)]
pub(super) struct Run {
    directory: TempDir,
}

impl Run {
    pub(super) fn new() -> Outcome<Self> {
        Ok(Self { directory: tempfile::tempdir()? })
    }

    /// Creates a command that counts the instructions of a program. Add the program's arguments.
    ///
    /// One count per thread: a server's clock is calibrated in a thread of its own, which runs for a fixed time and so
    /// for any number of instructions.
    pub(super) fn command(&self, valgrind: &PathBuf, program: &PathBuf) -> Command {
        let mut command = Cores::Any.command(Role::Server, valgrind);
        let mut out = std::ffi::OsString::from("--callgrind-out-file=");
        out.push(self.directory.path().join("counts"));
        command.args(["--tool=callgrind", "--separate-threads=yes"]).arg(out).arg(program);
        command
    }

    /// Returns the count of the thread with most instructions, after the program has ended.
    pub(super) fn instructions(&self) -> Outcome<u64> {
        let mut most = None;
        for file in std::fs::read_dir(self.directory.path())? {
            // Names of functions in the file need not be UTF-8.
            let bytes = std::fs::read(file?.path())?;
            most = most.max(total(&String::from_utf8_lossy(&bytes))?);
        }
        most.ok_or_else(|| "callgrind wrote no counts".into())
    }
}

/// Returns the number in the line `totals:`. The file of the process itself has none.
fn total(text: &str) -> Outcome<Option<u64>> {
    let line = text.lines().find_map(|line| line.strip_prefix("totals:"));
    Ok(line.map(|number| number.trim().parse()).transpose()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_is_that_of_the_busiest_thread() {
        let run = Run::new().unwrap();
        assert_eq!(run.instructions().unwrap_err().to_string(), "callgrind wrote no counts");
        for (name, text) in [
            ("counts", "# callgrind format\n"),
            ("counts-01", "events: Ir\nsummary: 11\nfn=main\n1 12\ntotals: 12\n"),
            ("counts-02", "totals: 34\n"),
            ("counts-03", "totals: 5\n"),
        ] {
            std::fs::write(run.directory.path().join(name), text).unwrap();
        }
        assert_eq!(run.instructions().unwrap(), 34);
    }
}

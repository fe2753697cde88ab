//! Instructions per decision of one path.

use std::path::PathBuf;
use std::thread;

use super::callgrind::Run;
use super::path::GuardedPath;
use super::served;
use crate::Outcome;

/// The argument with which [`Programs::measure`] starts this program as a child, before the path and the number of
/// decisions.
pub const CHILD: &str = "--run";

/// Paths of the programs.
#[derive(Debug, Clone)]
pub struct Programs {
    /// `valgrind`.
    pub valgrind: PathBuf,
    /// This package's `instructions`.
    pub instructions: PathBuf,
    /// The tollgate server.
    pub tollgate: PathBuf,
}

impl Programs {
    /// Returns the instructions per decision: the difference of two runs, divided by that of their decisions.
    ///
    /// # Errors
    /// A run fails, or the longer one has fewer instructions.
    pub fn measure(&self, path: GuardedPath) -> Outcome<u64> {
        let [few, many] = path.decisions();
        let [fewer, more] = thread::scope(|scope| {
            let runs =
                [few, many].map(|decisions| scope.spawn(move || self.count(path, decisions)));
            runs.map(|run| run.join().unwrap_or_else(|_| Err("the run panicked".into())))
        });
        let of_path = |error| format!("{path}: {error}");
        let (fewer, more) = (fewer.map_err(of_path)?, more.map_err(of_path)?);
        let added = more.checked_sub(fewer).filter(|added| *added > 0);
        let added = added.ok_or_else(|| {
            format!("{path}: {few} decisions take {fewer} instructions and {many} take {more}")
        })?;
        let decisions = u64::from(many - few);
        Ok((added + decisions / 2) / decisions)
    }

    fn count(&self, path: GuardedPath, decisions: u32) -> Outcome<u64> {
        match path {
            GuardedPath::HttpCheck => served::http_check(&self.valgrind, &self.tollgate, decisions),
            GuardedPath::RespThrottle => {
                served::resp_throttle(&self.valgrind, &self.tollgate, decisions)
            }
            GuardedPath::LocalCheck
            | GuardedPath::LocalTake
            | GuardedPath::PolicyPlan
            | GuardedPath::TowerLayer
            | GuardedPath::RedisTake
            | GuardedPath::LeaseTake => self.count_in_process(path, decisions),
        }
    }

    fn count_in_process(&self, path: GuardedPath, decisions: u32) -> Outcome<u64> {
        let run = Run::new()?;
        let mut command = run.command(&self.valgrind, &self.instructions);
        command.args([CHILD, path.name(), &decisions.to_string()]);
        let output =
            command.output().map_err(|error| format!("{}: {error}", self.valgrind.display()))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned().into());
        }
        run.instructions()
    }
}

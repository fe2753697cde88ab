//! Shell scripts in place of the measured programs.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tollgate_bench::machine::RunInfo;

/// Creates an executable shell script. Another process writes it: a file that this process has open
/// for writing while a thread forks cannot be executed.
pub(crate) fn fake_program(directory: &Path, name: &str, script: &str) -> PathBuf {
    let path = directory.join(name);
    let mut install = Command::new("install");
    install.args(["-m", "755", "/dev/stdin"]).arg(&path).stdin(Stdio::piped());
    let mut install = install.spawn().unwrap();
    write!(install.stdin.take().unwrap(), "#!/bin/sh\n{script}\n").unwrap();
    assert!(install.wait().unwrap().success());
    path
}

/// Returns the environment of a report.
pub(crate) fn run_info(subject: &str) -> RunInfo {
    RunInfo {
        date: "today".to_owned(),
        rustc: "rustc".to_owned(),
        command: format!("scripts/bench {subject} --quick"),
    }
}

//! The guard of instruction counts, with a shell script in place of valgrind.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::fake_program::fake_program;

const ENVIRONMENT: &str = "# rustc: rustc 1.95.0\n# libc: glibc 2.36\n# cpu: x86_64\n";

/// A directory with a program that takes 1000 instructions to start and 210 per decision.
struct Guard {
    directory: TempDir,
    valgrind: PathBuf,
}

impl Guard {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        // Arguments: --tool, --separate-threads, --callgrind-out-file=FILE, program, --run, path, decisions.
        let script =
            r#"echo "totals: $((1000 + 210 * $7))" >"${3#*=}-01"; echo "totals: 7" >"${3#*=}-02""#;
        let valgrind = fake_program(directory.path(), "valgrind", script);
        Self { directory, valgrind }
    }

    fn baseline(&self) -> PathBuf {
        self.directory.path().join("instructions.txt")
    }

    /// Runs the guard for two paths with these lines in the baseline.
    fn run(&self, counts: &str) -> Output {
        std::fs::write(self.baseline(), format!("{ENVIRONMENT}{counts}")).unwrap();
        self.run_as("rustc 1.95.0", &["local_check", "local_take"])
    }

    fn run_as(&self, rustc: &str, rest: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_instructions"));
        command.arg(&self.valgrind).arg(Path::new("tollgate")).arg(self.baseline());
        command.args([rustc, "glibc 2.36", "x86_64"]).args(rest).output().unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn growth_within_the_tolerance_passes_with_a_table() {
    let output = Guard::new().run("local_check 200\nlocal_take 210\n");
    assert!(output.status.success(), "{output:?}");
    let table = text(&output.stdout);
    assert!(table.contains("local_check          200       210    +5.0 %\n"), "{table}");
    assert!(table.contains("local_take           210       210    +0.0 %\n"), "{table}");
}

#[test]
fn growth_fails_and_names_path_figures_and_command() {
    let output = Guard::new().run("local_check 199\nlocal_take 210\n");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        text(&output.stderr),
        "instructions: local_check: 210 instructions per decision, 199 in the baseline: +5.5 %, more than 5 %. \
         Remove the added work, or accept it with scripts/instructions --update\n"
    );
    assert!(text(&output.stdout).contains("+5.5 %"), "{output:?}");
}

#[test]
fn improvement_suggests_an_update() {
    let output = Guard::new().run("local_check 230\nlocal_take 210\n");
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stdout).contains("run scripts/instructions --update"), "{output:?}");
}

#[test]
fn another_compiler_is_reported_and_does_not_fail() {
    let guard = Guard::new();
    guard.run("local_check 100\n");
    let output = guard.run_as("rustc 1.96.0", &["local_check"]);
    assert!(output.status.success(), "{output:?}");
    let message =
        "Not compared: the baseline is of rustc 1.95.0, glibc 2.36, x86_64; this is rustc 1.96.0";
    assert!(text(&output.stdout).contains(message), "{output:?}");
}

#[test]
fn problems_are_explained() {
    let guard = Guard::new();
    let output = guard.run_as("rustc 1.95.0", &["local_check"]);
    assert!(text(&output.stderr).contains("instructions.txt: No such file"), "{output:?}");
    let output = guard.run("local_check many\n");
    assert!(text(&output.stderr).contains("instructions.txt: invalid line"), "{output:?}");
    let output = guard.run("local_take 210\n");
    assert!(
        text(&output.stderr).contains("local_check: 210 instructions, and no baseline"),
        "{output:?}"
    );
    fake_program(guard.directory.path(), "valgrind", "echo no such tool >&2; exit 1");
    let output = guard.run("local_check 210\nlocal_take 210\n");
    assert_eq!(text(&output.stderr), "instructions: local_check: no such tool\n");
}

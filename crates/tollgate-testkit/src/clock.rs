//! Wall clock of child processes (a server or a node) that a test can set, by an `LD_PRELOAD` library.
//!
//! ```no_run
//! use std::time::Duration;
//! use tollgate_testkit::clock::{Clock, Shift};
//! use tollgate_testkit::server::{Flavor, Server};
//!
//! let clock = Clock::new();
//! let server = Server::builder(Flavor::Redis).clock(&clock).start();
//! clock.set(Shift::Ahead(Duration::from_secs(3600)));
//! println!("server time: {}", server.raw().call(&["TIME"]).array()[0].text());
//! ```

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crate::watchdog::{Watchdog, scratch};

/// Source of the library that overrides the clock of a process.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/shim/clock.c");

/// Offset of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shift {
    /// No offset.
    None,
    /// The clock is fast.
    Ahead(Duration),
    /// The clock is slow.
    Behind(Duration),
}

impl Shift {
    fn micros(self) -> i64 {
        let micros = |by: Duration| {
            i64::try_from(by.as_micros()).expect("the offset fits 64 bits of microseconds")
        };
        match self {
            Self::None => 0,
            Self::Ahead(by) => micros(by),
            Self::Behind(by) => -micros(by),
        }
    }
}

/// Wall clock of processes started with [`Clock::environment`]. Their monotonic clock is not changed.
#[derive(Debug)]
pub struct Clock {
    file: PathBuf,
    _files: Watchdog,
}

impl Clock {
    /// Creates a clock without an offset.
    ///
    /// # Panics
    /// If the clock file cannot be written.
    pub fn new() -> Self {
        let dir = scratch();
        let file = dir.join("clock");
        fs::write(&file, 0_i64.to_ne_bytes()).expect("cannot write the clock file");
        Self { file, _files: Watchdog::new(dir, &[]) }
    }

    /// Sets the offset, also for running processes, from their next clock read on.
    pub fn set(&self, shift: Shift) {
        let file =
            fs::File::options().write(true).open(&self.file).expect("cannot open the clock file");
        file.write_all_at(&shift.micros().to_ne_bytes(), 0).expect("cannot write the clock file");
    }

    /// Environment variables for a process that uses this clock.
    ///
    /// # Panics
    /// If there is no C compiler.
    pub fn environment(&self) -> [(&'static str, OsString); 2] {
        let shim = shim().as_os_str().to_owned();
        [("LD_PRELOAD", shim), ("TOLLGATE_CLOCK", self.file.as_os_str().to_owned())]
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// Builds the preload library once per process and returns its path.
fn shim() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/shim");
        fs::create_dir_all(&dir).expect("cannot create target/shim");
        let (built, new) = (dir.join("clock.so"), dir.join(format!("{}.so", std::process::id())));
        let mut command = Command::new("cc");
        command.args(["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-o"]).arg(&new).arg(SOURCE);
        let status = command.status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "cannot build {SOURCE}: install a C compiler (cc). On Debian: apt-get install gcc libc6-dev"
        );
        // Atomic replacement: running processes keep the previous file.
        fs::rename(&new, &built).expect("cannot write to target/shim");
        built.canonicalize().expect("the built library exists")
    })
}

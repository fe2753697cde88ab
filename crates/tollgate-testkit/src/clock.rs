//! A wall clock that a test sets, for other programs: of a server, or of a node of ours.
//!
//! ```no_run
//! use std::time::Duration;
//! use tollgate_testkit::clock::{Clock, Shift};
//! use tollgate_testkit::server::{Flavor, Server};
//!
//! let clock = Clock::new();
//! let server = Server::builder(Flavor::Redis).clock(&clock).start();
//! clock.set(Shift::Ahead(Duration::from_secs(3600)));
//! println!("by its clock it is {}", server.raw().call(&["TIME"]).array()[0].text());
//! ```

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crate::server::{Keeper, scratch};

/// What programs are told by, which run under this clock.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/shim/clock.c");

/// By how much a clock is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shift {
    /// It is right.
    None,
    /// It is later there.
    Ahead(Duration),
    /// It is earlier there.
    Behind(Duration),
}

impl Shift {
    fn micros(self) -> i64 {
        let micros = |by: Duration| i64::try_from(by.as_micros()).expect("less than an age");
        match self {
            Self::None => 0,
            Self::Ahead(by) => micros(by),
            Self::Behind(by) => -micros(by),
        }
    }
}

/// The wall clock of the programs that are started with [`Clock::environment`]. Their monotonic clock is
/// the real one.
#[derive(Debug)]
pub struct Clock {
    file: PathBuf,
    _files: Keeper,
}

impl Clock {
    /// One that is right, until it is set.
    ///
    /// # Panics
    /// If there is no C compiler.
    pub fn new() -> Self {
        let dir = scratch();
        let file = dir.join("clock");
        fs::write(&file, 0_i64.to_ne_bytes()).expect("a new directory can be written to");
        Self { file, _files: Keeper::new(dir, &[]) }
    }

    /// Sets it, for programs that run too: their next look at it tells.
    pub fn set(&self, shift: Shift) {
        let file = fs::File::options().write(true).open(&self.file).expect("the file is there");
        file.write_all_at(&shift.micros().to_ne_bytes(), 0).expect("the file can be written to");
    }

    /// What a program must find in its environment.
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

/// The library that stands between programs and the time, built once.
fn shim() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/shim");
        fs::create_dir_all(&dir).expect("target can be written to");
        let (built, new) = (dir.join("clock.so"), dir.join(format!("{}.so", std::process::id())));
        let mut command = Command::new("cc");
        command.args(["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-o"]).arg(&new).arg(SOURCE);
        let made = command.status();
        assert!(
            made.is_ok_and(|made| made.success()),
            "{SOURCE} was not built: is there a C compiler called cc? On Debian: apt-get install gcc libc6-dev"
        );
        // Whoever runs with the one before keeps it.
        fs::rename(&new, &built).expect("target can be written to");
        built.canonicalize().expect("it was just put there")
    })
}

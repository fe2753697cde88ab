//! The server implementations, and the paths of their programs.

use std::fmt;
use std::path::{Path, PathBuf};

/// A server with the Redis protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flavor {
    /// `redis-server` of the system, or the program in `TOLLGATE_REDIS_SERVER`.
    Redis,
    /// `valkey-server` as `scripts/servers` installs it, or the program in `TOLLGATE_VALKEY_SERVER`.
    Valkey,
}

impl Flavor {
    /// All flavors.
    pub const ALL: [Self; 2] = [Self::Redis, Self::Valkey];

    /// The flavors that `scripts/servers` installs with TLS.
    pub const WITH_TLS: [Self; 1] = [Self::Redis];

    /// Returns the program to run.
    ///
    /// # Panics
    /// If it is not installed.
    pub(super) fn program(self) -> PathBuf {
        let (variable, default) = match self {
            Self::Redis => ("TOLLGATE_REDIS_SERVER", Path::new("redis-server").to_owned()),
            Self::Valkey => ("TOLLGATE_VALKEY_SERVER", installed("valkey/bin/valkey-server")),
        };
        let program = std::env::var_os(variable).map_or(default, PathBuf::from);
        assert!(
            exists(&program),
            "{} not found: run scripts/servers, or apt-get install redis-server for Redis, or set {variable} to the \
             program",
            program.display()
        );
        program
    }
}

impl fmt::Display for Flavor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Redis => "redis",
            Self::Valkey => "valkey",
        })
    }
}

/// Returns a path below `target` of the repository, independent of the build directory of cargo.
fn installed(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(path)
}

fn exists(program: &Path) -> bool {
    let is_bare = program.components().count() == 1;
    let path = std::env::var_os("PATH").unwrap_or_default();
    program.is_file()
        || is_bare && std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

//! Which servers there are, and where their programs lie.

use std::fmt;
use std::path::{Path, PathBuf};

/// A server that speaks as Redis does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flavor {
    /// `redis-server` of the system, or what `TOLLGATE_REDIS_SERVER` names.
    Redis,
    /// `valkey-server` as `scripts/servers` installs it, or what `TOLLGATE_VALKEY_SERVER` names.
    Valkey,
}

impl Flavor {
    /// Each of them.
    pub const ALL: [Self; 2] = [Self::Redis, Self::Valkey];

    /// Each whose program, as `scripts/servers` installs it, was built with TLS.
    pub const WITH_TLS: [Self; 1] = [Self::Redis];

    /// The program to run.
    ///
    /// # Panics
    /// If it is not installed.
    pub(super) fn program(self) -> PathBuf {
        let (setting, usual) = match self {
            Self::Redis => ("TOLLGATE_REDIS_SERVER", Path::new("redis-server").to_owned()),
            Self::Valkey => ("TOLLGATE_VALKEY_SERVER", installed("valkey/bin/valkey-server")),
        };
        let program = std::env::var_os(setting).map_or(usual, PathBuf::from);
        assert!(
            is_there(&program),
            "there is no {}: run scripts/servers, or apt-get install redis-server for Redis, or name \
             a program in {setting}",
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

/// Below the `target` of the repository, wherever cargo builds.
fn installed(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(path)
}

fn is_there(program: &Path) -> bool {
    let is_bare = program.components().count() == 1;
    let path = std::env::var_os("PATH").unwrap_or_default();
    program.is_file()
        || is_bare && std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

//! The software and version of a server.

use std::fmt;

/// The oldest supported version of Redis.
const MIN_VERSION: Version = (6, 2, 0);

type Version = (u32, u32, u32);

/// The software and version of a server. Displayed as `redis 7.0.15`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// `redis`, `valkey` or `keydb`.
    pub(crate) software: &'static str,
    /// The version of that software.
    pub(crate) version: Version,
    /// The version of Redis that it is compatible with.
    redis_version: Version,
    /// Whether it is a node of a cluster.
    pub(crate) is_in_cluster: bool,
}

/// Returns a field of an `INFO` reply.
pub(crate) fn info_field<'i>(info: &'i str, name: &str) -> Option<&'i str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

impl fmt::Display for ServerInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor, patch) = self.version;
        write!(f, "{} {major}.{minor}.{patch}", self.software)
    }
}

impl ServerInfo {
    /// Parses the reply to `INFO server`. `None` if it contains no version.
    pub(super) fn parse(info: &[u8]) -> Option<Self> {
        let info = String::from_utf8_lossy(info);
        let field = |name: &str| info_field(&info, name);
        let redis_version = version(field("redis_version")?)?;
        let valkey_version = field("valkey_version").and_then(version);
        let is_keydb = || field("executable").is_some_and(|path| path.contains("keydb"));
        let (software, version) = match valkey_version {
            Some(version) => ("valkey", version),
            None if is_keydb() => ("keydb", redis_version),
            None => ("redis", redis_version),
        };
        let is_in_cluster = field("redis_mode") == Some("cluster");
        Some(Self { software, version, redis_version, is_in_cluster })
    }

    /// Returns an error if the server is too old.
    pub(super) fn check(self) -> Result<Option<Self>, String> {
        if self.redis_version >= MIN_VERSION {
            return Ok(Some(self));
        }
        let (major, minor, patch) = self.redis_version;
        Err(format!("cannot be used: Redis {major}.{minor}.{patch} is too old; use 6.2 or newer"))
    }
}

/// Parses three numbers and ignores a suffix: `7.0.15`, `6.2.0-rc1`.
fn version(text: &str) -> Option<Version> {
    let mut numbers = text.splitn(3, '.').map(|part| {
        let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        part.get(..digits)?.parse().ok()
    });
    Some((numbers.next()??, numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::ServerInfo;

    fn parse(info: &str) -> Option<(&'static str, super::Version)> {
        ServerInfo::parse(info.as_bytes()).map(|info| (info.software, info.version))
    }

    #[test]
    fn parses_software_and_version() {
        assert_eq!(
            parse("# Server\r\nredis_version:7.0.15\r\nos:x\r\n"),
            Some(("redis", (7, 0, 15)))
        );
        assert_eq!(parse("redis_version:6.2.0-rc1\r\n"), Some(("redis", (6, 2, 0))));
        let valkey = "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.0\r\n";
        assert_eq!(parse(valkey), Some(("valkey", (9, 1, 0))));
        let keydb = "redis_version:6.3.4\r\nexecutable:/usr/bin/keydb-server\r\n";
        assert_eq!(parse(keydb), Some(("keydb", (6, 3, 4))));
        for incomplete in ["", "redis_version:\r\n", "redis_version:7\r\n", "xredis_version:7.0.0"]
        {
            assert_eq!(parse(incomplete), None);
        }
    }

    #[test]
    fn rejects_old_versions() {
        let old = ServerInfo::parse(b"redis_version:5.0.7\r\n").unwrap();
        let error = old.check().unwrap_err();
        assert_eq!(error, "cannot be used: Redis 5.0.7 is too old; use 6.2 or newer");
        assert!(ServerInfo::parse(b"redis_version:6.2.0\r\n").unwrap().check().is_ok());
    }
}

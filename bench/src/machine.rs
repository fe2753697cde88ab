//! Environment of a benchmark: machine, compiler, versions.

use std::fs;
use std::thread;

/// Values that the calling script passes in.
#[derive(Debug, Clone)]
pub struct RunInfo {
    /// Date and time of the run.
    pub date: String,
    /// Output of `rustc --version`.
    pub rustc: String,
    /// The command that reproduces the report.
    pub command: String,
}

/// Describes the CPU model, the number of cores and the kernel in one line.
#[must_use]
pub fn describe() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu_model(&cpuinfo).unwrap_or("unknown processor");
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{model}, {cores} cores, Linux {}", kernel.trim())
}

/// Returns the name and locked version of a dependency.
#[must_use]
pub fn peer(name: &str) -> String {
    let version = locked_version(include_str!("../../Cargo.lock"), name);
    format!("{name} {}", version.unwrap_or("of unknown version"))
}

fn locked_version<'l>(lock: &'l str, name: &str) -> Option<&'l str> {
    let quoted = |line: &'l str, key: &str| {
        let value = line.strip_prefix(key)?.strip_prefix(" = ")?;
        Some(value.trim_matches('"'))
    };
    let mut lines = lock.lines();
    lines.find(|line| quoted(line, "name") == Some(name))?;
    lines.next().and_then(|line| quoted(line, "version"))
}

fn cpu_model(cpuinfo: &str) -> Option<&str> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, model)| model.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_cpu_model() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\nmodel\t: 1\n";
        assert_eq!(cpu_model(cpuinfo), Some("Some CPU @ 3 GHz"));
    }

    #[test]
    fn finds_the_version_of_a_package() {
        let lock = "[[package]]\nname = \"other\"\nversion = \"1.0.0\"\n\n\
                    [[package]]\nname = \"peer\"\nversion = \"0.10.4\"\n";
        assert_eq!(locked_version(lock, "peer"), Some("0.10.4"));
        assert_eq!(locked_version(lock, "absent"), None);
    }

    #[test]
    fn finds_the_locked_peer_versions() {
        assert!(peer("governor").starts_with("governor 0.10."));
        assert!(peer("throttlecrab").starts_with("throttlecrab 0.4."));
    }
}

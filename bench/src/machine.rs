//! Where and with what the figures were taken.

use std::fs;
use std::thread;

/// What the program cannot know by itself.
#[derive(Debug, Clone)]
pub struct Given {
    /// When.
    pub date: String,
    /// The compiler's version.
    pub rustc: String,
    /// What to type to get the same document.
    pub command: String,
}

/// The processor, its cores and the kernel, in one line.
#[must_use]
pub fn describe() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu_model(&cpuinfo).unwrap_or("unknown processor");
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{model}, {cores} cores, Linux {}", kernel.trim())
}

/// The version of a peer that this program was built with.
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
    fn finds_the_model_among_other_lines() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\nmodel\t: 1\n";
        assert_eq!(cpu_model(cpuinfo), Some("Some CPU @ 3 GHz"));
    }

    #[test]
    fn finds_the_version_behind_the_name() {
        let lock = "[[package]]\nname = \"other\"\nversion = \"1.0.0\"\n\n\
                    [[package]]\nname = \"peer\"\nversion = \"0.10.4\"\n";
        assert_eq!(locked_version(lock, "peer"), Some("0.10.4"));
        assert_eq!(locked_version(lock, "nobody"), None);
    }

    #[test]
    fn knows_the_versions_of_the_peers() {
        assert!(peer("governor").starts_with("governor 0.10."));
        assert!(peer("throttlecrab").starts_with("throttlecrab 0.4."));
    }
}

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
}

//! The committed baseline: one line per path, and the environment that the counts depend on.

use std::fmt;

use super::path::GuardedPath;
use crate::Outcome;

/// What counts depend on besides the source.
///
/// Not the CPU model: valgrind presents the same one on every x86-64 machine with AVX2, so the same variants of
/// functions are selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// Output of `rustc --version`.
    pub rustc: String,
    /// Name and version of the C library.
    pub libc: String,
    /// CPU architecture and features.
    pub cpu: String,
}

/// Instructions per decision of each path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Baseline {
    /// The environment of the measurement.
    pub environment: Environment,
    /// Paths and counts.
    pub counts: Vec<(GuardedPath, u64)>,
}

const HEADER: &str = "\
# Instructions per decision of the guarded paths. `scripts/instructions` fails if one grows by more than 5 %.
# `scripts/instructions --update` writes this file. Counts are comparable in this environment only:";

impl Baseline {
    /// Parses the file.
    ///
    /// # Errors
    /// The environment is incomplete, or a line is not `path count`.
    pub fn parse(text: &str) -> Outcome<Self> {
        let of = |name: &str| {
            let prefix = format!("# {name}: ");
            let line = text.lines().find_map(|line| line.strip_prefix(&prefix));
            line.map(str::to_owned).ok_or_else(|| format!("no line `{}`", prefix.trim_end()))
        };
        let environment = Environment { rustc: of("rustc")?, libc: of("libc")?, cpu: of("cpu")? };
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let counts = lines.map(parse_line).collect::<Outcome<_>>()?;
        Ok(Self { environment, counts })
    }

    /// Returns the count of a path.
    #[must_use]
    pub fn count(&self, wanted: GuardedPath) -> Option<u64> {
        self.counts.iter().find(|(path, _)| *path == wanted).map(|(_, count)| *count)
    }

    /// Lowers the count of a path to that of another measurement.
    pub fn lower(&mut self, of: GuardedPath, measured: u64) {
        for (_, count) in self.counts.iter_mut().filter(|(path, _)| *path == of) {
            *count = measured.min(*count);
        }
    }
}

fn parse_line(line: &str) -> Outcome<(GuardedPath, u64)> {
    let invalid = || format!("invalid line, expected `path count`: {line}");
    let (path, count) = line.split_once(' ').ok_or_else(invalid)?;
    Ok((GuardedPath::parse(path)?, count.parse().map_err(|_| invalid())?))
}

/// The text of the file.
impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Environment { rustc, libc, cpu } = &self.environment;
        writeln!(f, "{HEADER}\n# rustc: {rustc}\n# libc: {libc}\n# cpu: {cpu}")?;
        self.counts.iter().try_for_each(|(path, count)| writeln!(f, "{path} {count}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_round_trips() {
        let environment = Environment {
            rustc: "rustc 1.95.0".to_owned(),
            libc: "glibc 2.36".to_owned(),
            cpu: "x86_64 with AVX2".to_owned(),
        };
        let counts = vec![(GuardedPath::LocalCheck, 200), (GuardedPath::HttpCheck, 20_000)];
        let baseline = Baseline { environment, counts };
        assert_eq!(Baseline::parse(&baseline.to_string()).unwrap(), baseline);
        assert_eq!(baseline.count(GuardedPath::HttpCheck), Some(20_000));
        assert_eq!(baseline.count(GuardedPath::LocalTake), None);
    }

    #[test]
    fn errors_name_the_line() {
        let environment = "# rustc: 1\n# libc: 2\n# cpu: 3\n";
        for (text, message) in [
            ("", "no line `# rustc:`"),
            ("# rustc: 1\n# libc: 2\n", "no line `# cpu:`"),
            (&format!("{environment}local_check"), "expected `path count`: local_check"),
            (&format!("{environment}local_check many"), "expected `path count`: local_check many"),
            (&format!("{environment}other 7"), "unknown path other"),
        ] {
            let error = Baseline::parse(text).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}

//! Bytes per key: growth of a process that does nothing but fill one store.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Outcome;
use crate::candidate::Candidate;
use crate::keys::{Draw, KeyFormat};
use crate::markdown::{Table, Target};
use crate::rounds::Rounds;
use crate::scale::{Scale, short_count};
use crate::timed_run::Run;

/// The argument with which [`measure`] starts the program as a child.
pub const CHILD: &str = "--memory";

/// Returns the target for bytes per key, excluding the key text. Only short keys are stored in their slots.
const fn target(key_format: KeyFormat) -> Target {
    match key_format {
        KeyFormat::User => Target::AtMost(48.0),
        KeyFormat::Uuid => Target::AtMost(64.0),
    }
}

/// Number of decisions that load all code and make the first allocations before the measurement.
const WARM_UP: u32 = 1000;

/// Measured limiters. The clock does not affect memory, so tollgate is measured once.
const CANDIDATES: [Candidate; 5] = [
    Candidate::Tollgate,
    Candidate::Governor,
    Candidate::Adaptive,
    Candidate::Periodic,
    Candidate::Probabilistic,
];

/// Bytes per key of one store.
#[derive(Debug, Clone)]
pub struct Row {
    /// The limiter.
    pub candidate: Candidate,
    /// The key format.
    pub key_format: KeyFormat,
    /// Bytes per key, including the key text.
    pub bytes: Rounds,
}

/// Measures all stores. Starts `program` as a new child process for each figure.
///
/// # Errors
/// A child process fails or does not print a number.
pub fn measure(program: &Path, scale: &Scale) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for key_format in KeyFormat::ALL {
        for candidate in CANDIDATES {
            let rounds =
                (0..scale.refills).map(|_| run_child(program, candidate, key_format, scale.filled));
            rows.push(Row { candidate, key_format, bytes: rounds.collect::<Outcome<_>>()? });
        }
    }
    Ok(rows)
}

fn run_child(
    program: &Path,
    candidate: Candidate,
    key_format: KeyFormat,
    keys: u32,
) -> Outcome<f64> {
    let arguments = [CHILD, candidate.name(), key_format.name(), &keys.to_string()];
    let output = Command::new(program).args(arguments).output()?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {}", candidate.name(), message.trim()).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// Returns the output of a child process, given the arguments after [`CHILD`].
///
/// # Errors
/// The arguments are invalid, or the system has no `/proc`.
pub fn child(arguments: &[String]) -> Outcome<String> {
    let [candidate, key_format, keys] = arguments else {
        return Err("expected a limiter, a key format and a number of keys".into());
    };
    let candidate = CANDIDATES.into_iter().find(|known| known.name() == candidate);
    let key_format = KeyFormat::ALL.into_iter().find(|known| known.name() == key_format);
    let (Some(candidate), Some(key_format)) = (candidate, key_format) else {
        return Err("unknown limiter or key format".into());
    };
    Ok(measure_growth(candidate, key_format, keys.parse()?)?.to_string())
}

fn measure_growth(candidate: Candidate, key_format: KeyFormat, keys: u32) -> Outcome<f64> {
    let draw = Draw::Sequential { from: 0, key_format };
    candidate.build(WARM_UP)?.run_exclusive(&Run { draw, decisions: WARM_UP }).nanos()?;
    let before = resident_kib()?;
    let mut limiter = candidate.build(keys)?;
    limiter.run_exclusive(&Run { draw, decisions: keys }).nanos()?;
    let after = resident_kib()?;
    limiter.check_no_drops()?;
    Ok(f64::from(after.saturating_sub(before)) * 1024.0 / f64::from(keys))
}

fn resident_kib() -> Outcome<u32> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let figure = line.and_then(|line| line.split_whitespace().next());
    Ok(figure.ok_or("no VmRSS in /proc/self/status")?.parse()?)
}

/// Returns the figures as a table.
#[must_use]
pub fn table(rows: &[Row], scale: &Scale) -> Table {
    let keys = format!("bytes per key, {} keys", short_count(scale.filled));
    let mut table = Table::new([&keys, "total", "without key text", "target", ""]);
    for row in rows {
        let without_key = row.bytes.minus_constant(f64::from(row.key_format.bytes()));
        let (target, verdict) = match row.candidate {
            Candidate::Tollgate => {
                let target = target(row.key_format);
                (target.to_string(), target.verdict(without_key.median()).to_owned())
            }
            _ => Default::default(),
        };
        let label = format!("{}, keys of {} bytes", row.candidate.name(), row.key_format.bytes());
        table.push([label, row.bytes.to_string(), without_key.to_string(), target, verdict]);
    }
    table
}

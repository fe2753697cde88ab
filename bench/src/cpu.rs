//! CPU time of a process, read from `/proc`.

use std::fs;
use std::process::Command;

use crate::Outcome;

/// Reads the CPU time of one process, including all its threads.
#[derive(Debug, Clone)]
pub struct Meter {
    stat: String,
    ticks_per_second: f64,
}

impl Meter {
    /// Creates a meter for the process with this id; `self` is the current process.
    ///
    /// # Errors
    /// `getconf CLK_TCK` fails.
    pub fn of(process: &str) -> Outcome<Self> {
        let output = Command::new("getconf").arg("CLK_TCK").output()?;
        let ticks_per_second = String::from_utf8(output.stdout)?.trim().parse()?;
        Ok(Self { stat: format!("/proc/{process}/stat"), ticks_per_second })
    }

    /// Returns the CPU time used so far, in seconds.
    ///
    /// # Errors
    /// The process has exited.
    pub fn seconds(&self) -> Outcome<f64> {
        let stat = fs::read_to_string(&self.stat)?;
        let ticks =
            ticks(&stat).ok_or_else(|| format!("{} has no CPU times: {stat}", self.stat))?;
        Ok(f64::from(ticks) / self.ticks_per_second)
    }
}

/// Returns the sum of user and system time (fields 14 and 15), in clock ticks. Field 2 is the
/// program name in parentheses; it may contain spaces and parentheses.
fn ticks(stat: &str) -> Option<u32> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut times = after_name.split_whitespace().skip(14 - 3).map(str::parse::<u32>);
    let (user, system) = (times.next()?.ok()?, times.next()?.ok()?);
    user.checked_add(system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_user_and_system_time_for_any_program_name() {
        let rest = "S 1 2 3 0 -1 4194304 10 11 12 13 250 50 7 8 20 0 3 0 999";
        for name in ["tollgate", "a) R 9 (b", ""] {
            assert_eq!(ticks(&format!("42 ({name}) {rest}")), Some(300));
        }
    }

    #[test]
    fn truncated_line_has_no_times() {
        assert_eq!(ticks("42 (tollgate) S 1 2 3"), None);
        assert_eq!(ticks(""), None);
    }

    #[test]
    fn cpu_time_of_current_process_increases() {
        let meter = Meter::of("self").unwrap();
        let before = meter.seconds().unwrap();
        let mut after = before;
        while after == before {
            after = meter.seconds().unwrap();
        }
        assert!(after > before);
    }
}

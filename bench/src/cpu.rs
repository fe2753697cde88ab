//! Processor time of a process, as the kernel counts it.

use std::fs;
use std::process::Command;

use crate::Outcome;

/// Reads the processor time of one process with all its threads.
#[derive(Debug, Clone)]
pub struct Meter {
    stat: String,
    ticks_per_second: f64,
}

impl Meter {
    /// Of the process of this number, or of this one by the name `self`.
    ///
    /// # Errors
    /// A system that does not tell how it counts.
    pub fn of(process: &str) -> Outcome<Self> {
        let output = Command::new("getconf").arg("CLK_TCK").output()?;
        let ticks_per_second = String::from_utf8(output.stdout)?.trim().parse()?;
        Ok(Self { stat: format!("/proc/{process}/stat"), ticks_per_second })
    }

    /// What it has used up to now, in seconds.
    ///
    /// # Errors
    /// A process that is no more.
    pub fn seconds(&self) -> Outcome<f64> {
        let stat = fs::read_to_string(&self.stat)?;
        let ticks = ticks(&stat).ok_or_else(|| format!("{} has no times: {stat}", self.stat))?;
        Ok(f64::from(ticks) / self.ticks_per_second)
    }
}

/// Time in user mode and in the kernel, which are fields 14 and 15. The second field is the program's
/// name in parentheses and may hold anything, spaces and parentheses too.
fn ticks(stat: &str) -> Option<u32> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut times = behind_name.split_whitespace().skip(14 - 3).map(str::parse::<u32>);
    let (user, system) = (times.next()?.ok()?, times.next()?.ok()?);
    user.checked_add(system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_user_and_system_time_whatever_the_program_is_called() {
        let rest = "S 1 2 3 0 -1 4194304 10 11 12 13 250 50 7 8 20 0 3 0 999";
        for name in ["tollgate", "a) R 9 (b", ""] {
            assert_eq!(ticks(&format!("42 ({name}) {rest}")), Some(300));
        }
    }

    #[test]
    fn a_line_cut_short_has_no_times() {
        assert_eq!(ticks("42 (tollgate) S 1 2 3"), None);
        assert_eq!(ticks(""), None);
    }

    #[test]
    fn this_process_uses_time() {
        let meter = Meter::of("self").unwrap();
        let before = meter.seconds().unwrap();
        let mut after = before;
        while after == before {
            after = meter.seconds().unwrap();
        }
        assert!(after > before);
    }
}

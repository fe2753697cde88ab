//! Command-line arguments.

use std::path::PathBuf;

use crate::scale::Scale;
use crate::timing::Timing;

/// The usage line.
pub const USAGE: &str =
    "usage: faults TOLLGATE [--quick] [--assert-timing] [--jobs N] [--write FILE | ROW…]";

/// The parsed arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments {
    /// The `tollgate` binary to test.
    pub tollgate: PathBuf,
    /// Short or full form of each row.
    pub scale: Scale,
    /// Whether bounds that depend on the speed of the machine are asserted: in the full form, and with
    /// `--assert-timing`.
    pub timing: Timing,
    /// The number of rows that run at the same time. More than one makes times meaningless.
    pub jobs: usize,
    /// The row numbers; empty for all.
    pub rows: Vec<u8>,
    /// The page into which the table of a full run of all rows is written.
    pub page: Option<PathBuf>,
}

impl Arguments {
    /// Parses the arguments after the program name. `None` if they do not match [`USAGE`].
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Option<Self> {
        let mut arguments = arguments.into_iter();
        let tollgate = PathBuf::from(arguments.next()?);
        let (mut scale, mut timing, mut jobs) = (Scale::Full, None, 1);
        let (mut rows, mut page) = (Vec::new(), None);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--quick" => scale = Scale::Quick,
                "--assert-timing" => timing = Some(Timing::Assert),
                "--jobs" => jobs = arguments.next()?.parse().ok().filter(|jobs| *jobs > 0)?,
                "--write" => page = Some(PathBuf::from(arguments.next()?)),
                number => rows.push(number.parse().ok()?),
            }
        }
        let timing = timing.unwrap_or(Timing::of(scale));
        let is_partial = scale == Scale::Quick || !rows.is_empty();
        let parsed = Self { tollgate, scale, timing, jobs, rows, page };
        (parsed.page.is_none() || !is_partial).then_some(parsed)
    }

    /// The flags of a process that runs one row in the same way.
    pub(crate) fn flags(&self) -> Vec<&'static str> {
        let mut flags = Vec::new();
        flags.extend((self.scale == Scale::Quick).then_some("--quick"));
        flags.extend((self.timing == Timing::Assert).then_some("--assert-timing"));
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::{Arguments, Scale, Timing};

    fn parse(line: &str) -> Option<Arguments> {
        Arguments::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn parses_rows_and_scale() {
        let parsed = parse("target/release/tollgate --quick --jobs 3 1 24").unwrap();
        assert_eq!((parsed.scale, parsed.jobs, parsed.rows), (Scale::Quick, 3, vec![1, 24]));
        assert_eq!(parse("tollgate").unwrap().scale, Scale::Full);
    }

    #[test]
    fn only_the_quick_form_reports_times() {
        let timing = |line| parse(line).unwrap().timing;
        assert_eq!(timing("tollgate"), Timing::Assert);
        assert_eq!(timing("tollgate --quick"), Timing::Report);
        assert_eq!(timing("tollgate --assert-timing --quick"), Timing::Assert);
    }

    #[test]
    fn flags_parse_to_the_same_arguments() {
        for line in ["tollgate", "tollgate --quick", "tollgate --quick --assert-timing"] {
            let parsed = parse(line).unwrap();
            let flags = format!("tollgate {}", parsed.flags().join(" "));
            assert_eq!(parse(&flags), Some(parsed), "{line}");
        }
    }

    #[test]
    fn only_a_full_run_of_all_rows_writes_a_page() {
        let page = parse("tollgate --write FAULTS.md").unwrap().page;
        assert_eq!(page, Some("FAULTS.md".into()));
        assert!(parse("tollgate --write FAULTS.md 1").is_none());
        assert!(parse("tollgate --quick --write FAULTS.md").is_none());
        assert!(parse("tollgate --write").is_none());
    }

    #[test]
    fn rejects_other_arguments() {
        assert!(parse("").is_none());
        assert!(parse("tollgate --slow").is_none());
        assert!(parse("tollgate --jobs").is_none());
        assert!(parse("tollgate --jobs 0").is_none());
    }
}

//! Command-line arguments.

use std::path::PathBuf;

use crate::stage::Scale;

/// The usage line.
pub const USAGE: &str = "usage: faults TOLLGATE [--quick] [ROW…]";

/// The parsed arguments.
#[derive(Debug, PartialEq, Eq)]
pub struct Arguments {
    /// The `tollgate` binary to test.
    pub tollgate: PathBuf,
    /// Short or full form of each row.
    pub scale: Scale,
    /// The row numbers; empty for all.
    pub rows: Vec<u8>,
}

impl Arguments {
    /// Parses the arguments after the program name. `None` if they do not match [`USAGE`].
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Option<Self> {
        let mut arguments = arguments.into_iter();
        let tollgate = PathBuf::from(arguments.next()?);
        let (mut scale, mut rows) = (Scale::Full, Vec::new());
        for argument in arguments {
            match argument.as_str() {
                "--quick" => scale = Scale::Quick,
                number => rows.push(number.parse().ok()?),
            }
        }
        Some(Self { tollgate, scale, rows })
    }
}

#[cfg(test)]
mod tests {
    use super::{Arguments, Scale};

    fn parse(line: &str) -> Option<Arguments> {
        Arguments::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn parses_rows_and_scale() {
        let parsed = parse("target/release/tollgate --quick 1 24").unwrap();
        assert_eq!((parsed.scale, parsed.rows), (Scale::Quick, vec![1, 24]));
        assert_eq!(parse("tollgate").unwrap().scale, Scale::Full);
    }

    #[test]
    fn rejects_other_arguments() {
        assert!(parse("").is_none());
        assert!(parse("tollgate --slow").is_none());
    }
}

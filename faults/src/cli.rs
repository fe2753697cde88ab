//! What the program is asked for.

use std::path::PathBuf;

use crate::stage::Scale;

/// How it is called.
pub const USAGE: &str = "usage: faults TOLLGATE [--quick] [ROW…]";

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Query {
    /// The program to break things under.
    pub tollgate: PathBuf,
    /// How much of each fault.
    pub scale: Scale,
    /// Which rows; all if none.
    pub rows: Vec<u8>,
}

impl Query {
    /// Reads the arguments after the program's name; nothing if they are not [`USAGE`].
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
    use super::{Query, Scale};

    fn parse(line: &str) -> Option<Query> {
        Query::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn rows_and_the_short_form_are_asked_for() {
        let asked = parse("target/release/tollgate --quick 1 24").unwrap();
        assert_eq!((asked.scale, asked.rows), (Scale::Quick, vec![1, 24]));
        assert_eq!(parse("tollgate").unwrap().scale, Scale::Full);
    }

    #[test]
    fn what_is_neither_is_refused() {
        assert!(parse("").is_none());
        assert!(parse("tollgate --slow").is_none());
    }
}

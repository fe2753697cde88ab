//! One row of the matrix.

use crate::stage::Stage;

/// Whether a row's short form is short enough to be part of every test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Some seconds.
    Quick,
    /// Longer, whatever is left out.
    Slow,
}

/// A fault, and a test of what users see.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// As the matrix counts.
    pub number: u8,
    /// What goes wrong.
    pub fault: &'static str,
    /// How.
    pub injected: &'static str,
    /// What is claimed: the name of the test.
    pub claim: &'static str,
    /// How long its short form takes.
    pub pace: Pace,
    /// Plays it, and tells what was seen. Panics if that is not what must be seen.
    pub play: fn(&Stage) -> String,
}

/// Rows: number and pace, fault, how it is injected, and the test, whose name is the claim.
macro_rules! rows {
    ($($number:literal $pace:ident, $fault:literal, $injected:literal: $room:ident :: $test:ident;)*) => {
        vec![$($crate::row::Row {
            number: $number,
            fault: $fault,
            injected: $injected,
            claim: stringify!($test),
            pace: $crate::row::Pace::$pace,
            play: $room::$test,
        }),*]
    };
}

pub(crate) use rows;

//! One row of the matrix.

use crate::stage::Stage;

/// Whether the short form of a row is part of the test suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Takes seconds: part of the test suite.
    Quick,
    /// Takes longer, even in its short form.
    Slow,
}

/// A fault and the test of what users see.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The number in the fault matrix.
    pub number: u8,
    /// The fault.
    pub fault: &'static str,
    /// The method of injection.
    pub injected: &'static str,
    /// The claim: the name of the test function.
    pub claim: &'static str,
    /// The duration class of its short form.
    pub pace: Pace,
    /// Runs the row and returns what was seen. Panics if an assertion fails.
    pub run: fn(&Stage) -> String,
}

/// Rows: number and pace, fault, injection, and the test function, whose name is the claim.
macro_rules! rows {
    ($($number:literal $pace:ident, $fault:literal, $injected:literal: $module:ident :: $test:ident;)*) => {
        vec![$($crate::row::Row {
            number: $number,
            fault: $fault,
            injected: $injected,
            claim: stringify!($test),
            pace: $crate::row::Pace::$pace,
            run: $module::$test,
        }),*]
    };
}

pub(crate) use rows;

//! Log lines: formats, their detection, and the facts of a line.

mod access_log;
mod cost_field;
mod forwarded;
#[cfg(test)]
mod fuzz_tests;
mod json;
mod payload;
mod time;

pub(crate) use cost_field::CostField;
pub(super) use cost_field::unit as unit_of_cost;
pub(super) use json::JsonFields;
pub(super) use payload::{FactNames, Payload};

/// What is wrong with a line.
pub(super) type LineError = &'static str;

/// Syntax of the lines of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// Common or combined log format, also with X-Forwarded-For.
    AccessLog,
    /// JSON lines, also with the field names of nginx.
    Json,
}

/// Returns whether only the request of a line is malformed: its address and time are valid, so that the line has the
/// format it looks like.
pub(super) fn is_request_error(reason: LineError) -> bool {
    [access_log::NO_REQUEST, payload::INVALID_PATH, payload::PATH_TOO_LONG].contains(&reason)
}

/// Formats that the error about an unknown one lists.
pub(super) const FORMATS: &str = "common, combined, combined with \"$http_x_forwarded_for\", nginx JSON, or JSON lines with \
                                  `time`, `ip`, `method` and `path`";

impl Format {
    /// Returns the format that a line looks like.
    pub(super) fn of_line(line: &[u8]) -> Self {
        match line.trim_ascii_start().first() {
            Some(b'{') => Self::Json,
            _ => Self::AccessLog,
        }
    }

    /// Writes the facts of a line and returns its time in microseconds since the Unix epoch.
    pub(super) fn parse(
        self,
        line: &[u8],
        fields: &JsonFields,
        facts: &mut Payload,
    ) -> Result<u64, LineError> {
        facts.clear();
        match self {
            Self::AccessLog => access_log::parse(line, fields.names(), facts),
            Self::Json => json::parse(line, fields, facts),
        }
    }
}

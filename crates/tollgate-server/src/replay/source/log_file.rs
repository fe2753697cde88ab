//! One log file: reads, parses and orders its lines.

use std::io;

use super::super::error::ReplayError;
use super::super::line::{FORMATS, Format, JsonFields, LineError, Payload, is_request_error};
use super::input::Input;
use super::reorder::Reorder;
use super::skipped::{SkippedLine, SkippedLines};
use crate::files::bounded_line::{MAX_LINE, read_line};

/// Number of lines in which a line of a known format must occur.
const DETECTION_LINES: u64 = 10;

/// UTF-8 byte order mark, with which some programs start a file.
const BOM: &[u8] = b"\xef\xbb\xbf";

const TOO_LONG: LineError = "the line is longer than 65536 bytes";
const LATE: LineError = "the time is more than 5 minutes before that of an earlier line";

/// A log that is being read.
pub(crate) struct LogFile<'f> {
    input: Input,
    fields: &'f JsonFields,
    format: Option<Format>,
    line: Vec<u8>,
    facts: Payload,
    reorder: Reorder,
    number: u64,
    is_ended: bool,
    skipped: SkippedLines,
}

impl<'f> LogFile<'f> {
    pub(crate) fn new(input: Input, fields: &'f JsonFields) -> Self {
        Self {
            input,
            fields,
            format: None,
            line: Vec::new(),
            facts: Payload::default(),
            reorder: Reorder::default(),
            number: 0,
            is_ended: false,
            skipped: SkippedLines::default(),
        }
    }

    /// Returns the time of the next request, or `None` at the end. Reads until no later line can precede it.
    pub(super) fn next_at(&mut self) -> Result<Option<u64>, ReplayError> {
        loop {
            if let Some(at) = self.reorder.next_at() {
                return Ok(Some(at));
            }
            if self.is_ended {
                return Ok(None);
            }
            self.read()?;
        }
    }

    /// Removes the next request and appends its facts to `out`.
    pub(super) fn take_next(&mut self, out: &mut Vec<u8>) {
        self.reorder.take_next(out);
    }

    pub(super) fn skipped(&mut self) -> SkippedLines {
        std::mem::take(&mut self.skipped)
    }

    /// Reads one line.
    fn read(&mut self) -> Result<(), ReplayError> {
        self.line.clear();
        let has_line = read_line(&mut *self.input.lines, &mut self.line);
        if !has_line.map_err(|error| self.read_error(&error))? {
            self.is_ended = true;
            self.reorder.end();
            return if self.format.is_none() { self.check_detected() } else { Ok(()) };
        }
        self.number += 1;
        if self.number == 1 && self.line.starts_with(BOM) {
            self.line.drain(..BOM.len());
        }
        if self.line.trim_ascii().is_empty() {
            return Ok(());
        }
        let had_format = self.format.is_some();
        let parsed = self.parse();
        if !had_format && self.format == Some(Format::AccessLog) && self.fields.has_renamed() {
            let name = &self.input.name;
            return Err(ReplayError::new(format!(
                "{name}: --field names the fields of JSON logs, but this is an access log; remove --field"
            )));
        }
        if !had_format && self.format == Some(Format::AccessLog) && self.fields.has_costs_of_json()
        {
            let name = &self.input.name;
            return Err(ReplayError::new(format!(
                "{name}: the only cost in an access log is the response size; use --cost-field UNIT=size"
            )));
        }
        match parsed {
            Ok(at) if self.reorder.add(at, self.facts.bytes()) => {}
            Ok(_) => {
                let (name, number, line) = (&self.input.name, self.number, &self.line);
                self.skipped.add_late(|| SkippedLine::new(name, number, LATE, line));
            }
            Err(reason) => {
                let (name, number, line) = (&self.input.name, self.number, &self.line);
                self.skipped.add_malformed(|| SkippedLine::new(name, number, reason, line));
                if self.format.is_none() && self.skipped.malformed >= DETECTION_LINES {
                    return self.check_detected();
                }
            }
        }
        Ok(())
    }

    /// Parses the line. The first line that can be parsed, apart from its request, selects the format of the file.
    fn parse(&mut self) -> Result<u64, LineError> {
        if self.line.len() > MAX_LINE {
            return Err(TOO_LONG);
        }
        let format = self.format.unwrap_or_else(|| Format::of_line(&self.line));
        let parsed = format.parse(&self.line, self.fields, &mut self.facts);
        if parsed.map_or_else(is_request_error, |_| true) {
            self.format = Some(format);
        }
        parsed
    }

    /// Returns an error if there were lines, and none in a known format.
    fn check_detected(&self) -> Result<(), ReplayError> {
        let Some(first) = self.skipped.first.first() else { return Ok(()) };
        Err(ReplayError::new(format!(
            "{}: unknown log format; supported: {FORMATS}\nline {}: {}: {}",
            self.input.name, first.number, first.reason, first.text
        )))
    }

    fn read_error(&self, error: &io::Error) -> ReplayError {
        let Input { name, is_compressed, .. } = &self.input;
        let number = self.number;
        match error.kind() {
            io::ErrorKind::UnexpectedEof if *is_compressed => {
                ReplayError::new(format!("{name}: the gzip file is truncated after line {number}"))
            }
            _ if *is_compressed => {
                ReplayError::new(format!("{name}: invalid gzip file after line {number}: {error}"))
            }
            _ => ReplayError::of_file(name, error),
        }
    }
}

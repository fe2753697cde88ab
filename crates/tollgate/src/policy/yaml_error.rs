//! YAML syntax errors in plain words.

use granit_parser::{ErrorKind, ScanError};

use super::error::Position;

const TAB: &str =
    "a tab is used for indentation; YAML allows only spaces there, so replace it with spaces";
const INDENT: &str = "wrong indentation: fields of the same map, and items of the same list, must start in the same \
                      column; compare this line with the ones above it";
const VALUE: &str = "unexpected \": \"; either this line is indented deeper than the field that it belongs beside, or a \
                     value that contains \": \" must be in quotes";
const NO_COLON: &str = "expected a field, written as NAME: VALUE with a space after the colon";
const OPEN_BRACKET: &str = "expected a comma or the end of a [ ] list or { } map that starts before this; close it, or \
                            add the comma";
const QUOTE: &str = "a quoted text that starts before this is not closed; add the closing quote";
const RESERVED: &str = "a value must not start with @, ` or %; write it in quotes";

/// Describes an error, and what to do about it.
pub(super) fn describe(error: &ScanError, max_depth: usize) -> String {
    let reason = match error.kind() {
        ErrorKind::RecursionLimitExceeded => {
            return format!("nested deeper than the maximum of {max_depth} levels");
        }
        ErrorKind::DirectiveDisallowed => {
            "YAML directives are not supported; remove the line that starts with %"
        }
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabInPlainScalar
        | ErrorKind::TabAtBlockScalarStart => TAB,
        ErrorKind::InvalidIndentation
        | ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::ExpectedBlockSequenceEntry
        | ErrorKind::BlockSequenceEntryNotAllowed => INDENT,
        ErrorKind::MappingValueNotAllowed => VALUE,
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => NO_COLON,
        ErrorKind::InvalidColonPlacement
        | ErrorKind::ExpectedFlowMappingSeparator
        | ErrorKind::ExpectedFlowSequenceSeparator => OPEN_BRACKET,
        ErrorKind::UnclosedQuotedScalar | ErrorKind::InvalidQuotedScalarIndent => QUOTE,
        ErrorKind::UnexpectedCharacter { character: '@' | '`' | '%' } => RESERVED,
        _ => return format!("invalid YAML: {}", printable(&error.info())),
    };
    reason.to_owned()
}

/// Returns the position of an error. The parser reports a tab after it, or at the end of the text before it.
pub(super) fn position(error: &ScanError, text: &str) -> Position {
    let reported = Position::of(error.marker());
    let max_lines = match error.kind() {
        ErrorKind::TabInPlainScalar => 2,
        ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation => 1,
        _ => return reported,
    };
    let indented_by_tab = |line: &str| {
        let indent = line.chars().take_while(|char| char.is_whitespace());
        indent.into_iter().position(|char| char == '\t')
    };
    let lines = text.lines().enumerate().skip(reported.line() - 1);
    let tab = lines.take(max_lines).find_map(|(line, text)| Some((line, indented_by_tab(text)?)));
    tab.map_or(reported, |(line, column)| Position::new(line + 1, column + 1))
}

/// Replaces control characters. The parser can quote a character of the file, which may be hostile.
fn printable(reason: &str) -> String {
    reason.chars().map(|char| if char.is_control() { '\u{fffd}' } else { char }).collect()
}

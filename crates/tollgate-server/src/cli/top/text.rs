//! Untrusted text on a terminal: control characters are escaped.

use ratatui::buffer::CellWidth;

/// Maximum number of combining marks per letter; more would overlap other lines.
const MAX_MARKS: u32 = 2;

/// Returns the text with control characters, direction marks and zero-width characters escaped as `\u{…}`.
pub(super) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    // A mark at the start would combine with the text before it, so it is escaped.
    let mut marks = MAX_MARKS;
    for letter in text.chars() {
        if letter == '\\' {
            shown.push_str("\\\\");
            marks = 0;
        } else if !is_printable(letter) {
            shown.extend(letter.escape_default());
            marks = 0;
        } else if columns_of(letter) > 0 {
            shown.push(letter);
            marks = 0;
        } else if marks < MAX_MARKS {
            shown.push(letter);
            marks += 1;
        } else {
            shown.extend(letter.escape_unicode());
        }
    }
    shown
}

/// Returns whether a character is safe to print. In addition to those that the standard library escapes, it excludes
/// blank letters, and variation selectors, whose width differs between terminals.
fn is_printable(letter: char) -> bool {
    match letter {
        ' '..='~' => true,
        '\u{115f}'
        | '\u{1160}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{ffa0}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{e0100}'..='\u{e01ef}' => false,
        // `escape_debug` escapes marks at the start of a text only, so a letter precedes the character.
        _ => String::from_iter(['a', letter]).escape_debug().count() == 2,
    }
}

/// Returns the width of a [`visible`] text in columns.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

fn columns_of(letter: char) -> usize {
    let mut bytes = [0; 4];
    usize::from(letter.encode_utf8(&mut bytes).cell_width())
}

/// Truncates a text to a width in columns; a truncated text ends with `…`.
pub(super) fn cut(text: &str, max: usize) -> String {
    if columns(text) <= max {
        return text.to_owned();
    }
    let Some(max) = max.checked_sub(1) else { return String::new() };
    let mut width = 0;
    let fitting = text.chars().take_while(|letter| {
        width += columns_of(*letter);
        width <= max
    });
    let mut cut: String = fitting.collect();
    cut.push('…');
    cut
}

/// Truncates or pads a text to a width in columns.
pub(super) fn padded(text: &str, width: usize, align_right: bool) -> String {
    let text = cut(text, width);
    let blank = " ".repeat(width.saturating_sub(columns(&text)));
    if align_right { blank + &text } else { text + &blank }
}

/// Returns equivalent JSON in one line without characters that a terminal interprets. Outside of ASCII, JSON has only
/// strings, so escaping keeps the value.
pub(super) fn json_line(json: &str) -> String {
    let mut line = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '\n' | '\r' | '\t' => line.push(' '),
            _ if is_printable(letter) => line.push(letter),
            _ => {
                let units = letter.encode_utf16(&mut [0; 2]).to_vec();
                units.iter().for_each(|unit| line.push_str(&format!("\\u{unit:04x}")));
            }
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_control_characters() {
        for (text, shown) in [
            ("user:1", "user:1"),
            ("a b", "a b"),
            ("\x1b[2J", "\\u{1b}[2J"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("a\nb\r\t\0", "a\\nb\\r\\t\\u{0}"),
            ("\u{202e}evil\u{2066}", "\\u{202e}evil\\u{2066}"),
            ("\u{200b}\u{feff}\u{a0}", "\\u{200b}\\u{feff}\\u{a0}"),
            ("c:\\u{1b}", "c:\\\\u{1b}"),
            ("日本 ü 😀", "日本 ü 😀"),
            ("e\u{301}", "e\u{301}"),
            ("\u{301}e", "\\u{301}e"),
            ("e\u{301}\u{301}\u{301}", "e\u{301}\u{301}\\u{301}"),
            ("\u{2764}\u{fe0f}", "\u{2764}\\u{fe0f}"),
        ] {
            assert_eq!(visible(text), shown, "{text:?}");
        }
    }

    #[test]
    fn every_character_is_visible_and_safe() {
        for letter in '\0'..=char::MAX {
            let shown = visible(&letter.to_string());
            assert!(!shown.chars().any(char::is_control), "{letter:?}");
            assert!(columns(&shown) > 0, "{letter:?}");
        }
    }

    #[test]
    fn truncates_wide_letters_by_width() {
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("日本語", 1), "…");
        assert_eq!(cut("日本語", 0), "");
        assert_eq!(padded("日本", 6, false), "日本  ");
        assert_eq!(padded("12", 4, true), "  12");
        assert_eq!(columns(&padded(&"x".repeat(1024), 7, false)), 7);
    }

    #[test]
    fn json_line_keeps_value() {
        let json = "{\"key\":\n\"\u{9b}31m\u{202e}\u{e0001}ü\\u001b\"}";
        let line = json_line(json);
        assert_eq!(line, "{\"key\": \"\\u009b31m\\u202e\\udb40\\udc01ü\\u001b\"}");
        let read = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap();
        assert_eq!(read(&line), read(json));
    }
}

//! Drawing of the details of a row.

use ratatui::Frame as Canvas;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::details::Line as Detail;
use super::super::text::{columns, cut, padded};
use super::theme::Theme;

/// Width of the names, with a gap.
const NAME_WIDTH: usize = 11;

/// Draws the details. Long texts continue on the next lines.
pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect, details: &[Detail], theme: Theme) {
    let width = usize::from(area.width);
    let mut rows = area.rows();
    for (name, text) in details {
        let mut name = *name;
        for part in wrapped(text, width.saturating_sub(NAME_WIDTH)) {
            let Some(row) = rows.next() else { return };
            let name_span = Span::styled(padded(name, NAME_WIDTH.min(width), false), theme.faint());
            canvas.render_widget(Line::from(vec![name_span, Span::raw(part)]), row);
            name = "";
        }
    }
}

/// Splits a text into parts of at most this width, at least one.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut parts = vec![String::new()];
    if width == 0 {
        return parts;
    }
    let mut used = 0;
    for letter in text.chars() {
        let needed = columns(letter.encode_utf8(&mut [0; 4]));
        if used + needed > width {
            parts.push(String::new());
            used = 0;
        }
        used += needed;
        if let Some(part) = parts.last_mut() {
            part.push(letter);
        }
    }
    // A letter may be wider than the area.
    parts.into_iter().map(|part| cut(&part, width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_continue_on_the_next_line() {
        assert_eq!(wrapped("abcdefg", 3), ["abc", "def", "g"]);
        assert_eq!(wrapped("日本語", 4), ["日本", "語"]);
        assert_eq!(wrapped("", 4), [""]);
        assert_eq!(wrapped("abc", 0), [""]);
    }
}

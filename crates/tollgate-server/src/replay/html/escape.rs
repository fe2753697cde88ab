//! Text of logs and policies in HTML. Everything that the page shows passes here.

use std::fmt;

/// Maximum number of characters of a key or path on the page.
const MAX_SHOWN: usize = 80;

/// Displays a text with the special characters of HTML and all control characters escaped.
pub(super) struct Escaped<'t>(pub(super) &'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, character) in self.0.chars().enumerate() {
            if position == MAX_SHOWN {
                return f.write_str("…");
            }
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                // Also characters that change the direction of text or have no width.
                '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                    f.write_str("\u{fffd}")?;
                }
                _ if character.is_control() => f.write_str("\u{fffd}")?,
                _ => write!(f, "{character}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_cannot_leave_their_element() {
        let hostile = "<script>alert('1')</script>\" onload=\"x&\u{0}\u{202e}";
        let shown = Escaped(hostile).to_string();
        assert!(!shown.contains(['<', '>', '"', '\'', '\u{0}', '\u{202e}']), "{shown}");
        assert_eq!(Escaped("a&b").to_string(), "a&amp;b");
        assert_eq!(Escaped(&"x".repeat(500)).to_string().chars().count(), MAX_SHOWN + 1);
    }
}

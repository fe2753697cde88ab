//! A minimal SVG writer: texts, lines and bars on a card that is legible in light and dark themes.

use std::fmt::{self, Write as _};

/// Colours of series, for a light and for a dark card.
const SERIES: [[&str; 2]; 5] = [
    ["#0969da", "#58a6ff"],
    ["#bc4c00", "#f0883e"],
    ["#1a7f37", "#3fb950"],
    ["#8250df", "#bc8cff"],
    ["#6e7781", "#8b949e"],
];

/// Displays a text with the special characters of XML escaped.
#[derive(Debug, Clone, Copy)]
pub struct Escaped<'t>(pub &'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                _ if character.is_control() => f.write_str(" ")?,
                _ => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

/// Which side of a text is at its x.
#[derive(Debug, Clone, Copy)]
pub enum Anchor {
    /// The left end.
    Start,
    /// The middle.
    Middle,
    /// The right end.
    End,
}

impl Anchor {
    const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// An image that is being drawn.
#[derive(Debug)]
pub struct Drawing(String);

impl Drawing {
    /// Creates an image of this size with a description for screen readers.
    #[must_use]
    pub fn new(width: f64, height: f64, description: &str) -> Self {
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" font-family=\"system-ui, sans-serif\" font-size=\"13\" role=\"img\" \
             aria-label=\"{}\">\n{}",
            Escaped(description),
            style(),
        );
        let (width, height) = (width - 1.0, height - 1.0);
        let _ = writeln!(
            text,
            r#"<rect class="card" x="0.5" y="0.5" width="{width}" height="{height}" rx="8"/>"#
        );
        Self(text)
    }

    /// Writes a text; the class is `text`, `dim`, `title` or that of a series.
    pub fn text(&mut self, [x, y]: [f64; 2], anchor: Anchor, class: &str, text: &str) {
        let (anchor, text) = (anchor.name(), Escaped(text));
        let _ = writeln!(
            self.0,
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#
        );
    }

    /// Draws a line; the class is `grid` or `axis`.
    pub fn line(&mut self, class: &str, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2]) {
        let _ = writeln!(
            self.0,
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        );
    }

    /// Draws a bar between two x.
    pub fn bar(&mut self, series: usize, [from, to]: [f64; 2], y: f64, height: f64) {
        let (x, width) = (from.min(to), (to - from).abs());
        let _ = writeln!(
            self.0,
            r#"<rect class="bar{series}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height}" rx="2"/>"#
        );
    }

    /// Draws a curve with a dot at each point.
    pub fn curve(&mut self, series: usize, points: &[[f64; 2]]) {
        let joined: Vec<String> = points.iter().map(|[x, y]| format!("{x:.1},{y:.1}")).collect();
        let _ =
            writeln!(self.0, r#"<polyline class="curve{series}" points="{}"/>"#, joined.join(" "));
        for [x, y] in points {
            let _ = writeln!(
                self.0,
                r#"<circle class="bar{series}" cx="{x:.1}" cy="{y:.1}" r="2.5"/>"#
            );
        }
    }

    /// Returns the complete image.
    #[must_use]
    pub fn finish(self) -> String {
        self.0 + "</svg>\n"
    }
}

/// The number of series with different colours.
pub const MAX_SERIES: usize = SERIES.len();

fn style() -> String {
    let theme = |dark: usize, [card, frame, text, dim]: [&str; 4]| {
        let mut css = format!(
            ".card{{fill:{card};stroke:{frame}}}.text,.title{{fill:{text}}}.dim{{fill:{dim}}}\
             .grid{{stroke:{frame}}}.axis{{stroke:{dim}}}"
        );
        for (series, colours) in SERIES.iter().enumerate() {
            let colour = colours.get(dark).copied().unwrap_or_default();
            let _ = write!(
                css,
                ".bar{series},.label{series}{{fill:{colour}}}.curve{series}{{stroke:{colour}}}"
            );
        }
        css
    };
    let light = theme(0, ["#ffffff", "#d0d7de", "#1f2328", "#57606a"]);
    let dark = theme(1, ["#0d1117", "#30363d", "#e6edf3", "#8b949e"]);
    format!(
        "<style>.title{{font-weight:600}}.dim{{font-size:12px}}polyline{{fill:none;stroke-width:2}}{light}\
         @media(prefers-color-scheme:dark){{{dark}}}</style>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_escaped() {
        let mut drawing = Drawing::new(10.0, 10.0, "a < \"b\" & c");
        drawing.text([1.0, 2.0], Anchor::Middle, "text", "<script>\u{0}</script>");
        let image = drawing.finish();
        assert!(image.contains(r#"aria-label="a &lt; &quot;b&quot; &amp; c""#), "{image}");
        assert!(image.contains(">&lt;script&gt; &lt;/script&gt;</text>"), "{image}");
    }

    #[test]
    fn series_have_different_colours_in_both_themes() {
        for theme in 0..2 {
            let mut colours: Vec<_> = SERIES.iter().map(|colours| colours[theme]).collect();
            colours.sort_unstable();
            colours.dedup();
            assert_eq!(colours.len(), MAX_SERIES);
        }
    }
}

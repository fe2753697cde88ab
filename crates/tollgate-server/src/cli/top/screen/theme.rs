//! Text styles, with and without colours.

use ratatui::style::{Color, Modifier, Style};

use super::super::health::Severity;

/// Styles of the screen.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Theme {
    has_colours: bool,
}

impl Theme {
    pub(in super::super) fn new(has_colours: bool) -> Self {
        Self { has_colours }
    }

    fn coloured(self, colour: Color) -> Style {
        if self.has_colours { Style::new().fg(colour) } else { Style::new() }
    }

    /// Ordinary text.
    pub(super) fn plain(self) -> Style {
        Style::new()
    }

    pub(super) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Secondary text.
    pub(super) fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Selected table or row.
    pub(super) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(super) fn allowed(self) -> Style {
        self.coloured(Color::Green)
    }

    pub(super) fn refused(self) -> Style {
        self.coloured(Color::Red)
    }

    pub(super) fn severity(self, severity: Severity) -> Style {
        match severity {
            Severity::Error => self.coloured(Color::Red).add_modifier(Modifier::BOLD),
            Severity::Warning => self.coloured(Color::Yellow),
            Severity::Ok => self.coloured(Color::Green),
        }
    }
}

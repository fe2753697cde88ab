//! Colours, and what stands in for them where there are none.

use ratatui::style::{Color, Modifier, Style};

use super::super::health::Worry;

/// How things look.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Look {
    has_colours: bool,
}

impl Look {
    pub(in super::super) fn new(has_colours: bool) -> Self {
        Self { has_colours }
    }

    fn coloured(self, colour: Color) -> Style {
        if self.has_colours { Style::new().fg(colour) } else { Style::new() }
    }

    pub(super) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What is read second.
    pub(super) fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// What keys are for.
    pub(super) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(super) fn allowed(self) -> Style {
        self.coloured(Color::Green)
    }

    pub(super) fn refused(self) -> Style {
        self.coloured(Color::Red)
    }

    pub(super) fn worry(self, worry: Worry) -> Style {
        match worry {
            Worry::Bad => self.coloured(Color::Red).add_modifier(Modifier::BOLD),
            Worry::Doubtful => self.coloured(Color::Yellow),
            Worry::None => self.coloured(Color::Green),
        }
    }
}

//! The last minutes as bars, the newest at the right.

use ratatui::Frame as Canvas;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;

use super::super::figures::{count, length};
use super::super::response::Point;
use super::super::state::State;
use super::super::text::cut;
use super::look::Look;

/// The time that is shown, at least.
const SECONDS: u32 = 300;

/// Below this width, one above the other.
const WIDE: u16 = 60;

/// Eighths of a cell, from nothing.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A second nobody told of.
const UNTOLD: char = '·';

/// Draws what was allowed beside what was refused, each on a scale of its own: few refusals among many takes are
/// to be seen.
pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect, state: &State, look: Look) {
    let halves = if area.width < WIDE {
        Layout::vertical([Constraint::Fill(1); 2])
    } else {
        Layout::horizontal([Constraint::Fill(1); 2]).spacing(2)
    };
    let [first, second] = halves.areas(area);
    let allowed = Series { name: "allowed/s", of: |point| point.allowed, style: look.allowed() };
    let refused = Series { name: "refused/s", of: |point| point.refused, style: look.refused() };
    allowed.draw(canvas, first, state, look);
    refused.draw(canvas, second, state, look);
}

struct Series {
    name: &'static str,
    of: fn(&Point) -> f64,
    style: Style,
}

impl Series {
    fn draw(&self, canvas: &mut Canvas<'_>, area: Rect, state: &State, look: Look) {
        if area.is_empty() {
            return;
        }
        let width = u32::from(area.width);
        let step = SECONDS.div_ceil(width);
        let steps = state.steps(step, usize::from(area.width), self.of);
        let peak = steps.iter().flatten().copied().fold(0.0, f64::max);
        let time = length(i64::from(step.saturating_mul(width)));
        let title = format!("{}, last {time}, peak {}", self.name, count(peak));
        let title = Line::styled(cut(&title, usize::from(area.width)), look.faint());
        let [head, bars] =
            Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
        canvas.render_widget(title, head);
        for (row, from_below) in bars.rows().zip((0..bars.height).rev()) {
            let bar = |figure: &Option<f64>| cell(*figure, peak, bars.height, from_below);
            let line: String = steps.iter().map(bar).collect();
            canvas.render_widget(Line::styled(line, self.style), row);
        }
    }
}

/// What a bar fills of one of the rows it may take.
fn cell(figure: Option<f64>, peak: f64, rows: u16, from_below: u16) -> char {
    let Some(figure) = figure else {
        return if from_below == 0 { UNTOLD } else { ' ' };
    };
    if figure <= 0.0 || peak <= 0.0 {
        return ' ';
    }
    // Whatever was there is seen, however small beside the peak.
    let eighths = (figure / peak * f64::from(rows) * 8.0).max(1.0);
    let here = eighths - f64::from(from_below) * 8.0;
    let filled = (1_u8..=8).take_while(|eighth| here >= f64::from(*eighth)).count();
    EIGHTHS.get(filled).copied().unwrap_or(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(figure: Option<f64>, peak: f64, rows: u16) -> String {
        (0..rows).map(|from_below| cell(figure, peak, rows, from_below)).collect()
    }

    #[test]
    fn bars_are_as_high_as_their_figures() {
        assert_eq!(bar(Some(10.0), 10.0, 2), "██");
        assert_eq!(bar(Some(5.0), 10.0, 2), "█ ");
        assert_eq!(bar(Some(7.5), 10.0, 2), "█▄");
        assert_eq!(bar(Some(0.001), 10.0, 2), "▁ ");
        assert_eq!(bar(Some(0.0), 10.0, 2), "  ");
        assert_eq!(bar(Some(0.0), 0.0, 2), "  ");
        assert_eq!(bar(None, 10.0, 2), "· ");
    }
}

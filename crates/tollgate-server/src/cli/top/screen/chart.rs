//! Bar charts of the last minutes; the newest bar is on the right.

use ratatui::Frame as Canvas;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;

use super::super::format::{count, length};
use super::super::response::Point;
use super::super::state::State;
use super::super::text::cut;
use super::theme::Theme;

/// Minimum time shown, in seconds.
const MIN_SECONDS: u32 = 300;

/// Minimum width for two charts side by side, in columns.
const SIDE_BY_SIDE_WIDTH: u16 = 60;

/// Cell filled by 0 to 8 eighths.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Marker of a second without data.
const NO_DATA: char = '·';

/// Draws allowed and refused requests, each on its own scale so that few refusals among many requests stay visible.
pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect, state: &State, theme: Theme) {
    let halves = if area.width < SIDE_BY_SIDE_WIDTH {
        Layout::vertical([Constraint::Fill(1); 2])
    } else {
        Layout::horizontal([Constraint::Fill(1); 2]).spacing(2)
    };
    let [first, second] = halves.areas(area);
    let allowed =
        Series { name: "allowed/s", value_of: |point| point.allowed, style: theme.allowed() };
    let refused =
        Series { name: "refused/s", value_of: |point| point.refused, style: theme.refused() };
    allowed.draw(canvas, first, state, theme);
    refused.draw(canvas, second, state, theme);
}

struct Series {
    name: &'static str,
    value_of: fn(&Point) -> f64,
    style: Style,
}

impl Series {
    fn draw(&self, canvas: &mut Canvas<'_>, area: Rect, state: &State, theme: Theme) {
        if area.is_empty() {
            return;
        }
        let width = u32::from(area.width);
        let step = MIN_SECONDS.div_ceil(width);
        let steps = state.steps(step, usize::from(area.width), self.value_of);
        let peak = steps.iter().flatten().copied().fold(0.0, f64::max);
        let time = length(i64::from(step.saturating_mul(width)));
        let title = format!("{}, last {time}, peak {}", self.name, count(peak));
        let title = Line::styled(cut(&title, usize::from(area.width)), theme.faint());
        let [head, bars] =
            Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
        canvas.render_widget(title, head);
        for (area, row) in bars.rows().zip((0..bars.height).rev()) {
            let bar = |value: &Option<f64>| cell(*value, peak, bars.height, row);
            let line: String = steps.iter().map(bar).collect();
            canvas.render_widget(Line::styled(line, self.style), area);
        }
    }
}

/// Returns the character of a bar in one of its rows; row 0 is the lowest.
fn cell(value: Option<f64>, peak: f64, rows: u16, row: u16) -> char {
    let Some(value) = value else {
        return if row == 0 { NO_DATA } else { ' ' };
    };
    if value <= 0.0 || peak <= 0.0 {
        return ' ';
    }
    // A value above 0 is always visible.
    let eighths = (value / peak * f64::from(rows) * 8.0).max(1.0);
    let here = eighths - f64::from(row) * 8.0;
    let filled = (1_u8..=8).take_while(|eighth| here >= f64::from(*eighth)).count();
    EIGHTHS.get(filled).copied().unwrap_or(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(value: Option<f64>, peak: f64, rows: u16) -> String {
        (0..rows).map(|row| cell(value, peak, rows, row)).collect()
    }

    #[test]
    fn bar_height_is_proportional_to_value() {
        assert_eq!(bar(Some(10.0), 10.0, 2), "██");
        assert_eq!(bar(Some(5.0), 10.0, 2), "█ ");
        assert_eq!(bar(Some(7.5), 10.0, 2), "█▄");
        assert_eq!(bar(Some(0.001), 10.0, 2), "▁ ");
        assert_eq!(bar(Some(0.0), 10.0, 2), "  ");
        assert_eq!(bar(Some(0.0), 0.0, 2), "  ");
        assert_eq!(bar(None, 10.0, 2), "· ");
    }
}

//! Draws panels side by side, with logarithmic axes.

use super::panel::{Curve, Panel};
use crate::scale::short_count;
use crate::svg::{Anchor, Drawing};

const WIDTH: f64 = 380.0;
const HEIGHT: f64 = 260.0;
/// Space around the curves of a panel: left, right, top, bottom.
const MARGINS: [f64; 4] = [52.0, 24.0, 88.0, 34.0];
const PER_ROW: u32 = 2;

/// Numbers of the vertical axis.
const TICKS: [f64; 16] =
    [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5];

/// Draws the panels as SVG.
#[must_use]
pub fn draw(panels: &[Panel]) -> String {
    let rows = f64::from(u32::try_from(panels.len()).unwrap_or_default().div_ceil(PER_ROW));
    let titles: Vec<&str> = panels.iter().map(|panel| panel.title).collect();
    let description = format!("Nanoseconds per decision by {}", titles.join(", ").to_lowercase());
    let mut drawing = Drawing::new(WIDTH * f64::from(PER_ROW), HEIGHT * rows, &description);
    for (nth, panel) in (0_u32..).zip(panels) {
        let origin = [WIDTH * f64::from(nth % PER_ROW), HEIGHT * f64::from(nth / PER_ROW)];
        if let Some(frame) = Frame::new(origin, panel) {
            frame.draw(&mut drawing, panel);
        }
    }
    drawing.finish()
}

/// The area of the curves, and the ranges of its axes.
struct Frame {
    origin: [f64; 2],
    sizes: [f64; 2],
    nanos: [f64; 2],
}

impl Frame {
    /// Returns `None` for a panel without points.
    fn new(origin: [f64; 2], panel: &Panel) -> Option<Self> {
        let points = || panel.curves.iter().flat_map(|curve| &curve.points);
        let sizes = range(points().map(|(size, _)| f64::from(*size)))?;
        let [low, high] = range(points().map(|(_, nanos)| nanos.median()))?;
        let below = TICKS.into_iter().rfind(|tick| *tick <= low).unwrap_or(low);
        let above = TICKS.into_iter().find(|tick| *tick >= high).unwrap_or(high);
        Some(Self { origin, sizes, nanos: [below, above] })
    }

    fn x(&self, size: f64) -> f64 {
        let [left, right, ..] = MARGINS;
        self.origin[0] + left + share(self.sizes, size) * (WIDTH - left - right)
    }

    fn y(&self, nanos: f64) -> f64 {
        let [.., top, bottom] = MARGINS;
        self.origin[1] + HEIGHT - bottom - share(self.nanos, nanos) * (HEIGHT - top - bottom)
    }

    fn draw(&self, drawing: &mut Drawing, panel: &Panel) {
        let [left, top] = self.origin;
        drawing.text([left + 16.0, top + 24.0], Anchor::Start, "title", panel.title);
        drawing.text(
            [left + WIDTH - 24.0, top + 24.0],
            Anchor::End,
            "dim",
            "ns per decision, log axes",
        );
        let [low, high] = self.nanos;
        for tick in TICKS.into_iter().filter(|tick| (low..=high).contains(tick)) {
            let y = self.y(tick);
            drawing.line("grid", [self.x(self.sizes[0]), y], [self.x(self.sizes[1]), y]);
            let at = [self.x(self.sizes[0]) - 6.0, y + 4.0];
            drawing.text(at, Anchor::End, "dim", &format!("{tick}"));
        }
        let sizes = panel.curves.first().map(|curve| curve.points.as_slice()).unwrap_or_default();
        for (nth, (size, _)) in sizes.iter().enumerate() {
            let unit = if nth + 1 == sizes.len() { panel.axis } else { "" };
            let label = format!("{} {unit}", short_count(*size));
            let at = [self.x(f64::from(*size)), self.y(low) + 18.0];
            let anchor = if unit.is_empty() { Anchor::Middle } else { Anchor::End };
            drawing.text(
                [at[0] + if unit.is_empty() { 0.0 } else { 16.0 }, at[1]],
                anchor,
                "dim",
                label.trim_end(),
            );
        }
        for (series, curve) in panel.curves.iter().enumerate() {
            self.curve(drawing, series, curve);
        }
    }

    fn curve(&self, drawing: &mut Drawing, series: usize, curve: &Curve) {
        let points = curve.points.iter();
        let points = points.map(|(size, nanos)| [self.x(f64::from(*size)), self.y(nanos.median())]);
        drawing.curve(series, &points.collect::<Vec<_>>());
        let row = f64::from(u32::try_from(series).unwrap_or_default());
        let [left, top] = self.origin;
        let label = [left + MARGINS[0], top + 42.0 + 15.0 * row];
        drawing.text(label, Anchor::Start, &format!("label{series}"), curve.name);
    }
}

/// Returns the position of a value between the ends of a range, on a logarithmic axis.
fn share([low, high]: [f64; 2], value: f64) -> f64 {
    if high > low { (value / low).ln() / (high / low).ln() } else { 0.5 }
}

/// Returns the minimum and the maximum; `None` if there are no values or one is not positive.
fn range(values: impl Iterator<Item = f64>) -> Option<[f64; 2]> {
    let found = values
        .fold([f64::INFINITY, 0.0_f64], |[low, high], value| [low.min(value), high.max(value)]);
    (found[0] > 0.0 && found[1].is_finite() && found[1] > 0.0).then_some(found)
}

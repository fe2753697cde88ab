//! Text format of figures: one `name value` line each. Load generators print it to the parent
//! process.

use std::fmt;

use crate::Outcome;

/// Writes one line per figure.
///
/// # Errors
/// Writing fails.
pub fn write<const N: usize>(
    f: &mut fmt::Formatter<'_>,
    names: &[&str; N],
    figures: [&f64; N],
) -> fmt::Result {
    names.iter().zip(figures).try_for_each(|(name, figure)| writeln!(f, "{name} {figure}"))
}

/// Parses the figures with these names, in this order.
///
/// # Errors
/// A line is missing or has no number.
pub fn read<const N: usize>(names: &[&str; N], text: &str) -> Outcome<[f64; N]> {
    let (mut lines, mut figures) = (text.lines(), [0.0; N]);
    for (name, figure) in names.iter().zip(&mut figures) {
        let line = lines.next().and_then(|line| line.strip_prefix(name));
        *figure = line.ok_or_else(|| format!("no {name} in: {text}"))?.trim().parse()?;
    }
    Ok(figures)
}

//! Figures as lines of text, each after its name: how a load in another process tells them.

use std::fmt;

use crate::Outcome;

/// A line per figure.
///
/// # Errors
/// What it is written to fails.
pub fn write<const N: usize>(
    f: &mut fmt::Formatter<'_>,
    names: &[&str; N],
    figures: [&f64; N],
) -> fmt::Result {
    names.iter().zip(figures).try_for_each(|(name, figure)| writeln!(f, "{name} {figure}"))
}

/// The figures of these names, in their order.
///
/// # Errors
/// A line that is missing, or that is none.
pub fn read<const N: usize>(names: &[&str; N], text: &str) -> Outcome<[f64; N]> {
    let (mut lines, mut figures) = (text.lines(), [0.0; N]);
    for (name, figure) in names.iter().zip(&mut figures) {
        let line = lines.next().and_then(|line| line.strip_prefix(name));
        *figure = line.ok_or_else(|| format!("no {name} in: {text}"))?.trim().parse()?;
    }
    Ok(figures)
}

//! The report as one page with plots: no script, no network, light and dark.

mod curve_plot;
mod escape;
mod key_table;
mod page;
mod svg;
mod time_plot;

pub(crate) use page::page;

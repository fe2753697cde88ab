//! How the time of a decision grows with the number of keys, rules, limits and threads.
//!
//! `panels` measures one `panel` for each; `subjects` are the limiters in them. `drawing` draws the curves,
//! `report` writes the tables.

mod drawing;
pub mod panel;
mod panels;
pub mod report;
mod subjects;

pub use drawing::draw;

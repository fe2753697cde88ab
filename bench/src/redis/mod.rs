//! Measures decisions that Redis makes, by the way it is asked.
//!
//! The [`load`] does one [`task`] in a process of its own: its callers ask one [`way`] under some
//! [`limits`], as fast as they are answered, and a [`sample`] is printed if every answer was right.

mod asker;
mod course;
pub mod inside;
pub mod limits;
pub mod load;
mod ours;
mod plain;
pub mod sample;
pub mod task;
pub mod way;

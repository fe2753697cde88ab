//! Measures decisions that Redis makes, by the way it is asked.
//!
//! On a [`stage`] runs a server, and the [`load`], which does one [`task`] in a process of its own: its
//! callers ask one [`way`] under some [`limits`], as fast as they are answered, and a [`sample`] is
//! printed if every answer was right. A [`contest`] gives everyone a turn in each round and keeps the
//! [`figures`]; [`asking`], [`idle`], [`refused`] and [`algorithms`] are its questions. [`floor`] asks
//! Redis's own benchmark, [`memory`] looks [`inside`], and [`report`] is the document. On a cluster [`spread`]
//! and [`across`] are the questions, and [`cluster_report`] is the document.

pub mod across;
pub mod algorithms;
mod asker;
pub mod asking;
mod cluster;
pub mod cluster_report;
pub mod contest;
mod course;
pub mod figures;
pub mod floor;
pub mod idle;
pub mod inside;
pub mod limits;
pub mod load;
pub mod memory;
mod notes;
mod ours;
mod plain;
pub mod refused;
pub mod report;
pub mod sample;
pub mod scale;
pub mod spread;
pub mod stage;
pub mod task;
pub mod way;
mod weighed;

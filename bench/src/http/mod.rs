//! Measures the HTTP front end beside a peer and a yardstick, each in a process of its own.
//!
//! A [`contender`] is a [`server`](crate::server) with what it is asked, under a [`policy`] where it is tollgate. The
//! [`load`] does one [`task`] in another process: it sends each [`request`] as soon as it has the last
//! [`answer`], reads the server's [`cpu`](crate::cpu) time and prints a [`sample`]. A [`contest`] gives everyone a
//! turn in each round and keeps the [`figures`]; [`front`], [`growth`] and [`policies`] are its
//! questions, and [`report`] the document.

pub mod answer;
mod connection;
pub mod constant;
pub mod contender;
pub mod contest;
mod course;
pub mod figures;
pub mod front;
pub mod growth;
pub mod load;
pub mod policies;
pub mod policy;
pub mod report;
pub mod request;
pub mod sample;
pub mod scale;
pub mod task;

//! Replays access logs against a policy, with the plan and step code of the server on the log's clock.
//!
//! Data flows one way: [`source`] reads lines ([`line`]) in the order of their times, [`pass`] moves them to the thread
//! that decides ([`decider`]), [`tally`] and [`curve`] count, [`report`] collects, and [`text`], [`json`] and [`html`] print.

mod batch;
mod curve;
mod decider;
mod error;
mod html;
mod json;
mod line;
mod pass;
mod progress;
mod report;
mod request_facts;
mod run;
mod source;
mod suggest;
mod suggestion;
mod tally;
mod text;
mod timescale;

pub(crate) use error::ReplayError;
pub(crate) use html::page as html_page;
pub(crate) use json::line as json_line;
pub(crate) use line::CostField;
pub(crate) use report::Report;
pub(crate) use run::{Replay, replay};
pub(crate) use suggest::suggest;
pub(crate) use text::{notes, report as text_report, skipped_notes};

//! The service and its command line, as their users meet them: the real binary, a real listener.

mod client;
mod service;

mod bad_input;
mod batch;
mod bounds;
mod check;
mod generated;

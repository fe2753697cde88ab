//! The RESP front end: decisions for any Redis client, in RESP2 and RESP3.

mod builtin;
mod client_command;
mod command_docs;
mod commands;
mod conversation;
mod decide;
mod decode;
mod encode;
mod error_reply;
mod info;
mod inline_command;
mod input;
mod limit_cache;
mod numbers;
mod pipeline;
mod policy_commands;
mod protocol;
mod repeated_command;
mod reservation_commands;
mod session;
#[cfg(test)]
mod tests;
mod throttle;

pub(crate) use protocol::Resp;

//! Limits shared by every process that asks one Redis.

#![allow(dead_code, reason = "the store that uses the link is not yet here")]

mod address;
mod connection;
mod failure;
#[cfg(test)]
mod fixtures;
mod link;
mod resp;
mod subscription;

pub use address::{Address, AddressError};

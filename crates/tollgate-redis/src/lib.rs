//! Limits shared by every process that asks one Redis.

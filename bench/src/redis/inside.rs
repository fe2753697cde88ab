//! What a Redis server tells of itself, and what is put into it by hand.

use std::fmt;

use redis::{Connection, FromRedisValue};

use crate::Outcome;

/// A connection of its own.
pub struct Inside(Connection);

impl Inside {
    /// Connects.
    ///
    /// # Errors
    /// Nobody listens there.
    pub fn connect(url: &str) -> Outcome<Self> {
        Ok(Self(redis::Client::open(url)?.get_connection()?))
    }

    /// The server's process.
    ///
    /// # Errors
    /// It does not tell.
    pub fn process(&mut self) -> Outcome<u32> {
        Ok(self.info("process_id")?.parse()?)
    }

    /// How many commands it has done so far, this one not included.
    ///
    /// # Errors
    /// It does not tell.
    pub fn commands(&mut self) -> Outcome<f64> {
        Ok(self.info("total_commands_processed")?.parse()?)
    }

    fn info(&mut self, name: &str) -> Outcome<String> {
        let all: String = self.call(&redis::cmd("INFO"))?;
        let value = all.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        Ok(value.ok_or_else(|| format!("the server does not tell its {name}"))?.trim().to_owned())
    }

    fn call<T: FromRedisValue>(&mut self, command: &redis::Cmd) -> Outcome<T> {
        Ok(command.query(&mut self.0)?)
    }
}

impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inside").finish_non_exhaustive()
    }
}

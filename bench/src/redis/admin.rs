//! Administrative access to a Redis server: `INFO`, memory, test data, cluster commands.

use std::fmt;

use redis::{Connection, FromRedisValue};

use crate::Outcome;

/// A separate connection for administrative commands.
pub struct AdminConnection(Connection);

impl AdminConnection {
    /// Connects to the server.
    ///
    /// # Errors
    /// The connection is refused.
    pub fn connect(url: impl AsRef<str>) -> Outcome<Self> {
        Ok(Self(redis::Client::open(url.as_ref())?.get_connection()?))
    }

    /// Returns the process id of the server.
    ///
    /// # Errors
    /// `INFO` fails or lacks the field.
    pub fn process(&mut self) -> Outcome<u32> {
        Ok(self.info("process_id")?.parse()?)
    }

    /// Returns the number of commands executed so far, excluding this one.
    ///
    /// # Errors
    /// `INFO` fails or lacks the field.
    pub fn commands(&mut self) -> Outcome<f64> {
        Ok(self.info("total_commands_processed")?.parse()?)
    }

    /// Returns the number of script and function calls so far.
    ///
    /// # Errors
    /// `INFO` fails.
    pub fn script_calls(&mut self) -> Outcome<f64> {
        const SCRIPTS: [&str; 3] = ["cmdstat_eval:", "cmdstat_evalsha:", "cmdstat_fcall:"];
        let info: String = self.call(redis::cmd("INFO").arg("commandstats"))?;
        let calls = |line: &str| {
            let stats = SCRIPTS.iter().find_map(|script| line.strip_prefix(script))?;
            stats.strip_prefix("calls=")?.split(',').next()?.parse::<f64>().ok()
        };
        Ok(info.lines().filter_map(calls).sum())
    }

    /// Returns the number of error replies so far.
    ///
    /// # Errors
    /// `INFO` fails or lacks the field.
    pub fn errors(&mut self) -> Outcome<f64> {
        Ok(self.info("total_error_replies")?.parse()?)
    }

    /// Returns the version of the server.
    ///
    /// # Errors
    /// `INFO` fails or lacks the field.
    pub fn version(&mut self) -> Outcome<String> {
        self.info("redis_version")
    }

    /// Returns `used_memory` in bytes.
    ///
    /// # Errors
    /// `INFO` fails or lacks the field.
    pub fn used_memory(&mut self) -> Outcome<f64> {
        Ok(self.info("used_memory")?.parse()?)
    }

    /// Returns the number of keys, and the number of keys with an expiry.
    ///
    /// # Errors
    /// `INFO` fails or lacks the field.
    pub fn keys(&mut self) -> Outcome<[u32; 2]> {
        let line = self.info("db0")?;
        let mut fields = line.split(',').filter_map(|field| field.split_once('='));
        let mut number = |name| {
            let (_, value) =
                fields.find(|(key, _)| *key == name).ok_or("INFO keyspace has no such field")?;
            Outcome::Ok(value.parse()?)
        };
        Ok([number("keys")?, number("expires")?])
    }

    /// Deletes all keys.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn clear(&mut self) -> Outcome<()> {
        self.call(redis::cmd("FLUSHALL").arg("SYNC"))
    }

    /// Returns up to about 1000 keys.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn some_keys(&mut self) -> Outcome<Vec<String>> {
        let (_, keys): (u64, Vec<String>) =
            self.call(redis::cmd("SCAN").arg(0).arg("COUNT").arg(1000))?;
        Ok(keys)
    }

    /// Returns the bytes of a key and its whole value, by `MEMORY USAGE`.
    ///
    /// # Errors
    /// The key does not exist.
    pub fn usage(&mut self, key: &str) -> Outcome<f64> {
        self.call(redis::cmd("MEMORY").arg("USAGE").arg(key).arg("SAMPLES").arg(0))
    }

    /// Sends a pipeline of commands.
    ///
    /// # Errors
    /// One of them failed.
    pub fn pipeline(&mut self, commands: &redis::Pipeline) -> Outcome<()> {
        Ok(commands.exec(&mut self.0)?)
    }

    /// Sends a `CLUSTER` command.
    ///
    /// # Errors
    /// The server returns an error.
    pub fn cluster<'w>(&mut self, words: impl IntoIterator<Item = &'w str>) -> Outcome<()> {
        let mut command = redis::cmd("CLUSTER");
        command.arg(words.into_iter().collect::<Vec<_>>());
        self.call(&command)
    }

    /// Returns whether the cluster has this many primaries and every slot has an owner.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn is_cluster_ready(&mut self, nodes: usize) -> Outcome<bool> {
        let info: String = self.call(redis::cmd("CLUSTER").arg("INFO"))?;
        let size = format!("cluster_size:{nodes}");
        Ok(["cluster_state:ok", &size].iter().all(|fact| info.lines().any(|line| line == *fact)))
    }

    fn info(&mut self, name: &str) -> Outcome<String> {
        let info: String = self.call(&redis::cmd("INFO"))?;
        let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        Ok(value.ok_or_else(|| format!("INFO has no field {name}"))?.trim().to_owned())
    }

    fn call<T: FromRedisValue>(&mut self, command: &redis::Cmd) -> Outcome<T> {
        Ok(command.query(&mut self.0)?)
    }
}

impl fmt::Debug for AdminConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminConnection").finish_non_exhaustive()
    }
}

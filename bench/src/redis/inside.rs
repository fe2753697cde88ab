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
    pub fn connect(url: impl AsRef<str>) -> Outcome<Self> {
        Ok(Self(redis::Client::open(url.as_ref())?.get_connection()?))
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

    /// How many of them it has answered with an error.
    ///
    /// # Errors
    /// It does not tell.
    pub fn errors(&mut self) -> Outcome<f64> {
        Ok(self.info("total_error_replies")?.parse()?)
    }

    /// The version it gives itself.
    ///
    /// # Errors
    /// It does not tell.
    pub fn version(&mut self) -> Outcome<String> {
        self.info("redis_version")
    }

    /// The bytes that its allocator has given out.
    ///
    /// # Errors
    /// It does not tell.
    pub fn used_memory(&mut self) -> Outcome<f64> {
        Ok(self.info("used_memory")?.parse()?)
    }

    /// How many keys there are, and how many of them expire.
    ///
    /// # Errors
    /// It does not tell.
    pub fn keys(&mut self) -> Outcome<[u32; 2]> {
        let line = self.info("db0")?;
        let mut fields = line.split(',').filter_map(|field| field.split_once('='));
        let mut number = |name| {
            let (_, value) = fields.find(|(key, _)| *key == name).ok_or("no such field")?;
            Outcome::Ok(value.parse()?)
        };
        Ok([number("keys")?, number("expires")?])
    }

    /// Forgets everything.
    ///
    /// # Errors
    /// The server is gone.
    pub fn clear(&mut self) -> Outcome<()> {
        self.call(redis::cmd("FLUSHALL").arg("SYNC"))
    }

    /// Some of the keys.
    ///
    /// # Errors
    /// The server is gone.
    pub fn some_keys(&mut self) -> Outcome<Vec<String>> {
        let (_, keys): (u64, Vec<String>) =
            self.call(redis::cmd("SCAN").arg(0).arg("COUNT").arg(1000))?;
        Ok(keys)
    }

    /// What a key and all of its value take, by `MEMORY USAGE`.
    ///
    /// # Errors
    /// No such key.
    pub fn usage(&mut self, key: &str) -> Outcome<f64> {
        self.call(redis::cmd("MEMORY").arg("USAGE").arg(key).arg("SAMPLES").arg(0))
    }

    /// Many commands at once.
    ///
    /// # Errors
    /// One of them failed.
    pub fn all(&mut self, commands: &redis::Pipeline) -> Outcome<()> {
        Ok(commands.exec(&mut self.0)?)
    }

    /// Tells it something about its cluster.
    ///
    /// # Errors
    /// It refuses.
    pub fn cluster<'w>(&mut self, words: impl IntoIterator<Item = &'w str>) -> Outcome<()> {
        let mut command = redis::cmd("CLUSTER");
        command.arg(words.into_iter().collect::<Vec<_>>());
        self.call(&command)
    }

    /// Whether every slot has a node, of so many, and it knows which.
    ///
    /// # Errors
    /// The server is gone.
    pub fn is_whole(&mut self, nodes: usize) -> Outcome<bool> {
        let told: String = self.call(redis::cmd("CLUSTER").arg("INFO"))?;
        let size = format!("cluster_size:{nodes}");
        Ok(["cluster_state:ok", &size].iter().all(|fact| told.lines().any(|line| line == *fact)))
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

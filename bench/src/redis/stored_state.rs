//! Kinds of per-key state whose memory is measured.

use std::sync::Arc;

use redis::{Cmd, Pipeline, cmd};
use tokio::runtime;
use tokio::task::JoinSet;
use tollgate::{Key, Limit, Plan, Quota, Store, Subject, Take};
use tollgate_redis::{Address, RedisStore};

use super::admin::AdminConnection;
use super::deployment::Deployment;
use super::limits::PERIOD;
use super::task::REPLY_TIMEOUT;
use crate::Outcome;

/// Number of concurrent callers that fill in keys.
const CALLERS: u32 = 64;

/// Commands per pipeline.
const CHUNK: usize = 1000;

/// A Unix time in microseconds, as scripts store it.
const TIMESTAMP: u64 = 1_794_796_463_000_000;

/// A kind of per-key state in Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoredState {
    /// tollgate's token bucket, with names that make keys of [`StoredState::KEY_BYTES`].
    Bucket,
    /// tollgate's token bucket with its default names.
    BucketByDefault,
    /// redis-cell's token bucket.
    Cell,
    /// An integer as a string.
    Number,
    /// A hash with tokens and time.
    Hash,
    /// tollgate's sliding window with this many entries.
    Log(u32),
    /// A sorted set of this many times.
    SortedSet(u32),
}

impl StoredState {
    /// Length of all keys in bytes, except those of [`StoredState::BucketByDefault`].
    pub(super) const KEY_BYTES: usize = 20;

    /// Creates `keys` keys.
    pub(super) fn fill(self, deployment: &Deployment, keys: u32) -> Outcome<()> {
        match self {
            Self::Bucket => take(deployment, "", &bucket()?.in_rule("api")?.named("min")?, keys, 1),
            Self::BucketByDefault => take(deployment, "rl:", &bucket()?, keys, 1),
            Self::Log(entries) => {
                let limit = Limit::sliding_window(Quota::try_new(entries.into(), PERIOD)?)?;
                take(deployment, "", &limit.in_rule("api")?.named("min")?, keys, entries)
            }
            _ => send(&mut deployment.admin()?, (0..keys).flat_map(|key| self.commands(key))),
        }
    }

    /// Returns the commands that create one key. It expires after [`PERIOD`], which is longer than
    /// the measurement.
    fn commands(self, number: u32) -> Vec<Cmd> {
        let key = key_name(number);
        let ttl_millis = u64::try_from(PERIOD.as_millis()).unwrap_or(u64::MAX);
        let command = |name, arguments: &[&str]| {
            let mut command = cmd(name);
            command.arg(&key).arg(arguments);
            command
        };
        let (now, ttl_millis) =
            ((TIMESTAMP + u64::from(number)).to_string(), ttl_millis.to_string());
        match self {
            Self::Number => vec![command("SET", &[&now, "PX", &ttl_millis])],
            Self::Hash => {
                vec![
                    command("HSET", &["tokens", "9", "at", &now]),
                    command("PEXPIRE", &[&ttl_millis]),
                ]
            }
            Self::Cell => {
                vec![command("CL.THROTTLE", &["9", "1", &PERIOD.as_secs().to_string()])]
            }
            Self::SortedSet(entries) => {
                let mut commands: Vec<Cmd> = Vec::new();
                for scenario in 0..u64::from(entries) {
                    let at = (TIMESTAMP + scenario * 1001).to_string();
                    commands.push(command("ZADD", &[&at, &at]));
                }
                commands.push(command("PEXPIRE", &[&ttl_millis]));
                commands
            }
            Self::Bucket | Self::BucketByDefault | Self::Log(_) => Vec::new(),
        }
    }
}

/// Returns the key with this number, named as tollgate names it for [`StoredState::Bucket`].
fn key_name(number: u32) -> String {
    format!("{{:{number:08}}}:tapi/min")
}

fn bucket() -> Outcome<Limit> {
    Ok(Limit::token_bucket(Quota::try_new(1, PERIOD)?.try_burst(10)?)?)
}

fn send(admin: &mut AdminConnection, commands: impl IntoIterator<Item = Cmd>) -> Outcome<()> {
    let mut commands = commands.into_iter().peekable();
    while commands.peek().is_some() {
        let mut pipeline = Pipeline::new();
        for command in commands.by_ref().take(CHUNK) {
            pipeline.add_command(command).ignore();
        }
        admin.pipeline(&pipeline)?;
    }
    Ok(())
}

/// Makes tollgate take `times` times per key. Takes of one key are sequential: concurrent takes
/// with equal times would share one log entry.
fn take(
    deployment: &Deployment,
    prefix: &str,
    limit: &Limit,
    keys: u32,
    times: u32,
) -> Outcome<()> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let builder = RedisStore::builder(deployment.url().parse::<Address>()?).prefix(prefix)?;
        let store = builder.timeout(REPLY_TIMEOUT).max_refusals(0).build();
        let limit = Arc::new(limit.clone());
        let mut callers = JoinSet::new();
        for first in 0..CALLERS {
            let numbers = (first..keys).step_by(CALLERS as usize);
            callers.spawn(caller(store.clone(), Arc::clone(&limit), numbers, times));
        }
        while let Some(caller) = callers.join_next().await {
            caller??;
        }
        Ok(())
    })
}

async fn caller(
    store: RedisStore,
    limit: Arc<Limit>,
    keys: impl Iterator<Item = u32>,
    times: u32,
) -> Outcome<()> {
    for key in keys {
        let subject = Subject::of([format!("{key:08}")]);
        for _ in 0..times {
            let plan = Plan::new([Take::new(Key::new(&subject, &limit), 1)])?;
            if !store.take(&plan).await?.is_allowed() {
                return Err("refused before the limit was reached".into());
            }
        }
    }
    Ok(())
}

//! What is weighed: state of the same keys, put there in different ways.

use std::sync::Arc;

use redis::{Cmd, Pipeline, cmd};
use tokio::runtime;
use tokio::task::JoinSet;
use tollgate::{Key, Limit, Plan, Quota, Store, Subject, Take};
use tollgate_redis::{Address, RedisStore};

use super::inside::Inside;
use super::limits::PERIOD;
use super::stage::Stage;
use super::task::PATIENCE;
use crate::Outcome;

/// As many callers fill in at once.
const CALLERS: u32 = 64;

/// Commands that are sent together.
const CHUNK: usize = 1000;

/// A time in microseconds, as scripts write it down.
const MOMENT: u64 = 1_794_796_463_000_000;

/// How something is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// tollgate's token bucket, under names that make keys of [`Kept::KEY_BYTES`].
    Bucket,
    /// The same under the names that it has by default.
    BucketByDefault,
    /// redis-cell's.
    Cell,
    /// A number.
    Number,
    /// Tokens and time in a hash.
    Hash,
    /// tollgate's sliding window of so many entries.
    Log(u32),
    /// Times in a sorted set, by themselves.
    SortedSet(u32),
}

impl Kept {
    /// How long all keys are but those of [`Kept::BucketByDefault`].
    pub(super) const KEY_BYTES: usize = 20;

    /// Fills in so many keys.
    pub(super) fn fill(self, stage: &Stage, keys: u32) -> Outcome<()> {
        match self {
            Self::Bucket => take(stage, "", &bucket()?.in_rule("api")?.named("min")?, keys, 1),
            Self::BucketByDefault => take(stage, "rl:", &bucket()?, keys, 1),
            Self::Log(entries) => {
                let limit = Limit::sliding_window(Quota::try_new(entries.into(), PERIOD)?)?;
                take(stage, "", &limit.in_rule("api")?.named("min")?, keys, entries)
            }
            _ => send(&mut stage.inside()?, (0..keys).flat_map(|key| self.commands(key))),
        }
    }

    /// What makes one key. A period's life is longer than the weighing takes.
    fn commands(self, number: u32) -> Vec<Cmd> {
        let key = text(number);
        let life = u64::try_from(PERIOD.as_millis()).unwrap_or(u64::MAX);
        let command = |name, arguments: &[&str]| {
            let mut command = cmd(name);
            command.arg(&key).arg(arguments);
            command
        };
        let (now, life) = ((MOMENT + u64::from(number)).to_string(), life.to_string());
        match self {
            Self::Number => vec![command("SET", &[&now, "PX", &life])],
            Self::Hash => {
                vec![command("HSET", &["tokens", "9", "at", &now]), command("PEXPIRE", &[&life])]
            }
            Self::Cell => {
                vec![command("CL.THROTTLE", &["9", "1", &PERIOD.as_secs().to_string()])]
            }
            Self::SortedSet(entries) => {
                let mut commands: Vec<Cmd> = Vec::new();
                for entry in 0..u64::from(entries) {
                    let at = (MOMENT + entry * 1001).to_string();
                    commands.push(command("ZADD", &[&at, &at]));
                }
                commands.push(command("PEXPIRE", &[&life]));
                commands
            }
            Self::Bucket | Self::BucketByDefault | Self::Log(_) => Vec::new(),
        }
    }
}

/// The key of this number, as tollgate names it under [`Kept::Bucket`].
fn text(number: u32) -> String {
    format!("{{:{number:08}}}:tapi/min")
}

fn bucket() -> Outcome<Limit> {
    Ok(Limit::token_bucket(Quota::try_new(1, PERIOD)?.try_burst(10)?)?)
}

fn send(inside: &mut Inside, commands: impl IntoIterator<Item = Cmd>) -> Outcome<()> {
    let mut commands = commands.into_iter().peekable();
    while commands.peek().is_some() {
        let mut together = Pipeline::new();
        for command in commands.by_ref().take(CHUNK) {
            together.add_command(command).ignore();
        }
        inside.all(&together)?;
    }
    Ok(())
}

/// Lets tollgate take as often for every key. A key is never asked about twice at once: takes of one
/// moment would be one entry of a log.
fn take(stage: &Stage, prefix: &str, limit: &Limit, keys: u32, times: u32) -> Outcome<()> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let builder = RedisStore::builder(stage.url().parse::<Address>()?).prefix(prefix)?;
        let store = builder.timeout(PATIENCE).max_refusals(0).build();
        let limit = Arc::new(limit.clone());
        let mut callers = JoinSet::new();
        for first in 0..CALLERS {
            let mine = (first..keys).step_by(CALLERS as usize);
            callers.spawn(caller(store.clone(), Arc::clone(&limit), mine, times));
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

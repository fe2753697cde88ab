//! What a key takes in Redis.

use std::thread;
use std::time::Duration;

use super::contest::Contest;
use super::inside::Inside;
use super::weighed::Kept;
use crate::Outcome;
use crate::markdown::{Table, Target};
use crate::scale::spoken;

/// How many entries logs have.
const ENTRIES: [u32; 3] = [10, 100, 1000];

/// What comes and goes with a connection.
const BUFFERS: f64 = 16_384.0;

const OF_CELL: Target = Target::AtMost(1.0);
const OF_SORTED_SET: Target = Target::AtMost(0.25);

/// Bytes a key.
#[derive(Debug, Clone, Copy)]
pub struct Weight {
    /// By the growth of `used_memory`: with its part of Redis's tables, and its expiry.
    pub growth: f64,
    /// By `MEMORY USAGE`.
    pub usage: f64,
    key_bytes: usize,
}

/// All that was weighed.
#[derive(Debug, Clone)]
pub struct Memory {
    keys: u32,
    /// Counters, by name.
    pub counters: Vec<(&'static str, Weight)>,
    /// tollgate's logs of so many entries, and sorted sets.
    pub logs: Vec<(u32, [Weight; 2])>,
}

impl Memory {
    /// Weighs everything; what was in Redis before is lost.
    ///
    /// # Errors
    /// A key that is not there, or does not expire.
    pub fn measure(contest: Contest<'_>) -> Outcome<Self> {
        let keys = contest.scale.keys;
        let cell = contest.stage.cell().map(|_| ("redis-cell", Kept::Cell));
        let kinds = [
            ("tollgate, token bucket", Kept::Bucket),
            ("the same, with the names it has by default", Kept::BucketByDefault),
        ];
        let floors = [("integer as a string", Kept::Number), ("hash of two fields", Kept::Hash)];
        let mut counters = Vec::new();
        for (name, kept) in kinds.into_iter().chain(cell).chain(floors) {
            counters.push((name, weigh(contest, kept, keys)?));
        }
        let mut logs = Vec::new();
        for entries in ENTRIES {
            let [log, set] = [Kept::Log(entries), Kept::SortedSet(entries)]
                .map(|kept| weigh(contest, kept, contest.scale.logs));
            logs.push((entries, [log?, set?]));
        }
        Ok(Self { keys, counters, logs })
    }

    /// The counters as a table.
    #[must_use]
    pub fn counters(&self) -> Table {
        let mut table = Table::new([
            format!("{} keys", spoken(self.keys)),
            "key".to_owned(),
            "bytes a key, of used_memory".to_owned(),
            "by MEMORY USAGE".to_owned(),
            "× redis-cell".to_owned(),
            "target".to_owned(),
            String::new(),
        ]);
        let cell = self.counters.iter().find(|(name, _)| *name == "redis-cell");
        for (place, (name, weight)) in self.counters.iter().enumerate() {
            let ratio = cell.map(|(_, cell)| weight.growth / cell.growth);
            let held = ratio.filter(|_| place == 0);
            table.push([
                (*name).to_owned(),
                weight.key_bytes.to_string(),
                format!("{:.0}", weight.growth),
                format!("{:.0}", weight.usage),
                ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
                held.map(|_| OF_CELL.to_string()).unwrap_or_default(),
                held.map(|ratio| OF_CELL.verdict(ratio).to_owned()).unwrap_or_default(),
            ]);
        }
        table
    }

    /// The logs as a table.
    #[must_use]
    pub fn logs(&self) -> Table {
        let mut table = Table::new([
            "entries",
            "tollgate, sliding window",
            "sorted set",
            "× sorted set",
            "target",
            "",
        ]);
        for (entries, [log, set]) in &self.logs {
            let ratio = log.usage / set.usage;
            let held = ENTRIES.last() == Some(entries);
            table.push([
                entries.to_string(),
                format!("{:.0}", log.usage),
                format!("{:.0}", set.usage),
                format!("{ratio:.2}"),
                if held { OF_SORTED_SET.to_string() } else { String::new() },
                if held { OF_SORTED_SET.verdict(ratio).to_owned() } else { String::new() },
            ]);
        }
        table
    }
}

fn weigh(contest: Contest<'_>, kept: Kept, keys: u32) -> Outcome<Weight> {
    let mut inside = contest.stage.inside()?;
    inside.clear()?;
    let before = settled(&mut inside)?;
    kept.fill(contest.stage, keys)?;
    let there = inside.keys()?;
    if there != [keys; 2] {
        return Err(
            format!("{kept:?}: keys and those that expire are {there:?}, not {keys}").into()
        );
    }
    // In whole bytes: buffers of connections make up fractions.
    let growth = ((settled(&mut inside)? - before) / f64::from(keys)).round();
    let some = inside.some_keys()?;
    let key_bytes = some.first().map_or(0, String::len);
    if kept != Kept::BucketByDefault && key_bytes != Kept::KEY_BYTES {
        return Err(format!("{kept:?}: keys of {key_bytes} bytes").into());
    }
    let usages = some.iter().map(|key| inside.usage(key)).collect::<Outcome<Vec<_>>>()?;
    let usage = usages.iter().sum::<f64>() / f64::from(u32::try_from(usages.len())?);
    Ok(Weight { growth, usage, key_bytes })
}

/// The memory in use once Redis has tidied up its tables, which it does by and by.
fn settled(inside: &mut Inside) -> Outcome<f64> {
    let mut last = inside.used_memory()?;
    for _ in 0..100 {
        thread::park_timeout(Duration::from_millis(100));
        let now = inside.used_memory()?;
        if (now - last).abs() < BUFFERS {
            return Ok(now);
        }
        last = now;
    }
    Err("the memory in use does not come to rest".into())
}

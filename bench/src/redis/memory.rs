//! Memory per key in Redis.

use std::thread;
use std::time::Duration;

use super::admin::AdminConnection;
use super::runner::Runner;
use super::stored_state::StoredState;
use crate::Outcome;
use crate::markdown::{Table, Target};
use crate::scale::short_count;

/// Numbers of entries in the measured logs.
const ENTRIES: [u32; 3] = [10, 100, 1000];

/// Bytes by which connection buffers may change `used_memory`.
const BUFFERS: f64 = 16_384.0;

const VS_CELL: Target = Target::AtMost(1.0);
const VS_SORTED_SET: Target = Target::AtMost(0.25);

/// Bytes per key.
#[derive(Debug, Clone, Copy)]
pub struct KeySize {
    /// By growth of `used_memory`: includes the key's part of Redis's hash tables and its expiry.
    pub growth: f64,
    /// By `MEMORY USAGE`.
    pub usage: f64,
    key_bytes: usize,
}

/// All results.
#[derive(Debug, Clone)]
pub struct Memory {
    keys: u32,
    /// Counters, by label.
    pub counters: Vec<(&'static str, KeySize)>,
    /// Per number of entries: tollgate's log and a sorted set.
    pub logs: Vec<(u32, [KeySize; 2])>,
}

impl Memory {
    /// Measures all kinds of state. Deletes all data in Redis.
    ///
    /// # Errors
    /// A key is missing or has no expiry.
    pub fn measure(runner: Runner<'_>) -> Outcome<Self> {
        let keys = runner.scale.keys;
        let cell = runner.deployment.cell().map(|_| ("redis-cell", StoredState::Cell));
        let kinds = [
            ("tollgate, token bucket", StoredState::Bucket),
            ("tollgate, token bucket, default key names", StoredState::BucketByDefault),
        ];
        let references = [
            ("integer as a string", StoredState::Number),
            ("hash of two fields", StoredState::Hash),
        ];
        let mut counters = Vec::new();
        for (name, state) in kinds.into_iter().chain(cell).chain(references) {
            counters.push((name, measure_size(runner, state, keys)?));
        }
        let mut logs = Vec::new();
        for entries in ENTRIES {
            let [log, set] = [StoredState::Log(entries), StoredState::SortedSet(entries)]
                .map(|state| measure_size(runner, state, runner.scale.logs));
            logs.push((entries, [log?, set?]));
        }
        Ok(Self { keys, counters, logs })
    }

    /// Returns the counters as a table.
    #[must_use]
    pub fn counters(&self) -> Table {
        let mut table = Table::new([
            format!("{} keys", short_count(self.keys)),
            "key bytes".to_owned(),
            "bytes per key by used_memory".to_owned(),
            "bytes per key by MEMORY USAGE".to_owned(),
            "× redis-cell".to_owned(),
            "target".to_owned(),
            String::new(),
        ]);
        let cell = self.counters.iter().find(|(name, _)| *name == "redis-cell");
        for (place, (name, size)) in self.counters.iter().enumerate() {
            let ratio = cell.map(|(_, cell)| size.growth / cell.growth);
            let target_ratio = ratio.filter(|_| place == 0);
            table.push([
                (*name).to_owned(),
                size.key_bytes.to_string(),
                format!("{:.0}", size.growth),
                format!("{:.0}", size.usage),
                ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
                target_ratio.map(|_| VS_CELL.to_string()).unwrap_or_default(),
                target_ratio.map(|ratio| VS_CELL.verdict(ratio).to_owned()).unwrap_or_default(),
            ]);
        }
        table
    }

    /// Returns the logs as a table.
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
            let has_target = ENTRIES.last() == Some(entries);
            table.push([
                entries.to_string(),
                format!("{:.0}", log.usage),
                format!("{:.0}", set.usage),
                format!("{ratio:.2}"),
                if has_target { VS_SORTED_SET.to_string() } else { String::new() },
                if has_target { VS_SORTED_SET.verdict(ratio).to_owned() } else { String::new() },
            ]);
        }
        table
    }
}

fn measure_size(runner: Runner<'_>, state: StoredState, keys: u32) -> Outcome<KeySize> {
    let mut admin = runner.deployment.admin()?;
    admin.clear()?;
    let before = stable_memory(&mut admin)?;
    state.fill(runner.deployment, keys)?;
    let counts = admin.keys()?;
    if counts != [keys; 2] {
        return Err(format!(
            "{state:?}: keys and expiring keys are {counts:?}; expected {keys} of each"
        )
        .into());
    }
    // Rounded to whole bytes: connection buffers cause fractions.
    let growth = ((stable_memory(&mut admin)? - before) / f64::from(keys)).round();
    let sample_keys = admin.some_keys()?;
    let key_bytes = sample_keys.first().map_or(0, String::len);
    if state != StoredState::BucketByDefault && key_bytes != StoredState::KEY_BYTES {
        return Err(format!("{state:?}: unexpected key length of {key_bytes} bytes").into());
    }
    let usages = sample_keys.iter().map(|key| admin.usage(key)).collect::<Outcome<Vec<_>>>()?;
    let usage = usages.iter().sum::<f64>() / f64::from(u32::try_from(usages.len())?);
    Ok(KeySize { growth, usage, key_bytes })
}

/// Waits until `used_memory` is stable and returns it. Redis resizes its hash tables in the
/// background.
fn stable_memory(admin: &mut AdminConnection) -> Outcome<f64> {
    let mut last = admin.used_memory()?;
    for _ in 0..100 {
        thread::park_timeout(Duration::from_millis(100));
        let now = admin.used_memory()?;
        if (now - last).abs() < BUFFERS {
            return Ok(now);
        }
        last = now;
    }
    Err("used_memory did not become stable".into())
}

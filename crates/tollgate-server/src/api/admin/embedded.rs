//! Overrides and audit of a node that is alone: in memory, and in the data directory if there is one.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use tollgate::{Clock, Override, Overrides, Subject, SystemClock, Timestamp};

use super::change::Change;
use crate::atomic_write;

const FILE: &str = "administration.json";
const BAD_FILE: &str = "administration.json.bad";
const VERSION: u64 = 1;
/// The most entries of the audit that are kept.
const MAX_AUDIT: usize = 1000;

/// What there is, and where it is kept.
#[derive(Debug)]
pub(super) struct Embedded {
    directory: Option<PathBuf>,
    clock: SystemClock,
    /// Held while it is written, so that what is written last is in force last.
    state: tokio::sync::Mutex<State>,
}

#[derive(Debug, Clone, Default)]
struct State {
    overrides: Overrides,
    audit: VecDeque<Entry>,
    last: u64,
}

/// An entry of the audit, as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) id: u64,
    pub(super) at_us: u64,
    pub(super) change: Change,
    /// Texts of overrides.
    pub(super) old: Option<String>,
    pub(super) new: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    version: u64,
    overrides: Vec<KeptOverride>,
    audit: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptOverride {
    client: String,
    text: String,
}

impl Embedded {
    /// What the directory holds; nothing without one.
    pub(super) fn open(directory: Option<PathBuf>) -> Result<Self, String> {
        let state = match &directory {
            Some(directory) => read(directory)?,
            None => State::default(),
        };
        let state = tokio::sync::Mutex::new(state);
        Ok(Self { directory, clock: SystemClock::new(), state })
    }

    /// Puts what cannot be read out of the way.
    pub(super) fn put_aside(directory: &Path) -> io::Result<()> {
        std::fs::rename(directory.join(FILE), directory.join(BAD_FILE))
    }

    pub(super) const fn is_kept(&self) -> bool {
        self.directory.is_some()
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) async fn overrides(&self) -> Overrides {
        self.state.lock().await.overrides.clone()
    }

    /// Changes a client's override, and has all of them obeyed. What was before; nothing where nothing would
    /// change. It must be let go to its end, or what is written and what is in force may differ.
    pub(super) async fn set(
        &self,
        client: &Subject,
        own: Option<Override>,
        change: &Change,
        obey: impl FnOnce(&Overrides),
    ) -> io::Result<Option<Option<Override>>> {
        let mut state = self.state.lock().await;
        let known = state.overrides.without_expired(self.now());
        let old = known.get(client).map(|own| (**own).clone());
        if old.is_none() && own.is_none() {
            return Ok(None);
        }
        let [before, after] = [&old, &own].map(|own| own.as_ref().map(Override::to_text));
        let mut next = State { overrides: known.with(client, own), ..state.clone() };
        next.add(change, self.now(), (before, after));
        self.keep(&mut state, next).await?;
        // Before another can change them: what is set last is in force last.
        obey(&state.overrides);
        Ok(Some(old))
    }

    /// Adds to the audit what changes no override.
    pub(super) async fn record(&self, change: &Change) -> io::Result<()> {
        let mut state = self.state.lock().await;
        let mut next = state.clone();
        next.add(change, self.now(), (None, None));
        self.keep(&mut state, next).await
    }

    /// Drops those that have ended, and has the others obeyed. The file may keep them a while longer: they are
    /// dropped whenever it is read.
    pub(super) async fn forget_ended(&self, obey: impl FnOnce(&Overrides)) {
        let mut state = self.state.lock().await;
        state.overrides = state.overrides.without_expired(self.now());
        obey(&state.overrides);
    }

    /// Entries of the audit, newest first, from the one before that of an id.
    pub(super) async fn audit(&self, before: Option<u64>, most: usize) -> Vec<Entry> {
        let state = self.state.lock().await;
        let is_older = |entry: &&Entry| before.is_none_or(|id| entry.id < id);
        state.audit.iter().rev().filter(is_older).take(most).cloned().collect()
    }

    /// First on the disk, then in force.
    async fn keep(&self, state: &mut State, next: State) -> io::Result<()> {
        if let Some(directory) = self.directory.clone() {
            let kept = next.clone();
            let write = move || {
                let text = serde_json::to_vec(&kept.kept()).map_err(io::Error::other)?;
                atomic_write::replace(&directory, FILE, |out| out.write_all(&text))
            };
            spawn_blocking(write).await.map_err(io::Error::other)??;
        }
        *state = next;
        Ok(())
    }
}

impl State {
    fn add(
        &mut self,
        change: &Change,
        at: Timestamp,
        (old, new): (Option<String>, Option<String>),
    ) {
        self.last += 1;
        let (id, at_us) = (self.last, at.as_micros());
        self.audit.push_back(Entry { id, at_us, change: change.clone(), old, new });
        if self.audit.len() > MAX_AUDIT {
            self.audit.pop_front();
        }
    }

    fn kept(&self) -> Kept {
        let kept = |(client, own): (&str, &std::sync::Arc<Override>)| KeptOverride {
            client: client.to_owned(),
            text: own.to_text(),
        };
        Kept {
            version: VERSION,
            overrides: self.overrides.after("").map(kept).collect(),
            audit: self.audit.iter().cloned().collect(),
        }
    }
}

fn read(directory: &Path) -> Result<State, String> {
    let named = |reason: &dyn std::fmt::Display| format!("{FILE}: {reason}");
    let bytes = match std::fs::read(directory.join(FILE)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(State::default()),
        Err(error) => return Err(named(&error)),
    };
    let kept: Kept = serde_json::from_slice(&bytes).map_err(|error| named(&error))?;
    if kept.version != VERSION {
        return Err(named(&"is of a later version"));
    }
    let own = |kept: &KeptOverride| {
        let client = Subject::from_escaped(&kept.client)
            .ok_or_else(|| named(&format!("{:?} is no client", kept.client)))?;
        let own = Override::from_text(&kept.text).map_err(|error| named(&error))?;
        Ok((client, own))
    };
    let overrides = kept.overrides.iter().map(own).collect::<Result<Overrides, String>>()?;
    let last = kept.audit.last().map_or(0, |entry| entry.id);
    Ok(State { overrides, audit: kept.audit.into(), last })
}

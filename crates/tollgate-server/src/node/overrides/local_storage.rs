//! Overrides and audit log of a node without Redis: in memory, and in a file of the data directory if there is one.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use tollgate::{Clock, Override, Overrides, Subject, SystemClock, Timestamp};

use super::change::{Change, ChangedOverride, OverrideEdit};
use super::saved_override::SavedOverride;
use crate::files::atomic_write;

const FILE: &str = "administration.json";
const BAD_FILE: &str = "administration.json.bad";
const VERSION: u64 = 1;
/// Maximum number of audit entries.
const MAX_AUDIT: usize = 1000;

/// The overrides and the audit log, and the directory they are saved in.
#[derive(Debug)]
pub(super) struct LocalStorage {
    directory: Option<PathBuf>,
    clock: SystemClock,
    /// Locked during a write, so that changes become active in the order they are written.
    state: tokio::sync::Mutex<State>,
}

#[derive(Debug, Clone, Default)]
struct State {
    overrides: Overrides,
    /// Entries are shared, because each change copies the state twice.
    audit: VecDeque<Arc<Entry>>,
    /// The id of the newest entry.
    last_id: u64,
}

/// An audit entry as saved in the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) id: u64,
    pub(super) at_us: u64,
    pub(super) change: Change,
    /// The old and new override as text.
    pub(super) old: Option<String>,
    pub(super) new: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedFile {
    version: u64,
    overrides: Vec<SavedOverride>,
    audit: Vec<Entry>,
}

/// A [`SavedFile`] to be written.
#[derive(Debug, Serialize)]
struct SavedFileRef<'a> {
    version: u64,
    overrides: Vec<SavedOverride>,
    audit: Vec<&'a Entry>,
}

impl LocalStorage {
    /// Loads the file of the directory; starts empty without a directory or file.
    pub(super) fn open(directory: Option<PathBuf>) -> Result<Self, String> {
        let state = match &directory {
            Some(directory) => read(directory)?,
            None => State::default(),
        };
        let state = tokio::sync::Mutex::new(state);
        Ok(Self { directory, clock: SystemClock::new(), state })
    }

    /// Renames an unreadable file, so that the server can start without it.
    pub(super) fn set_aside(directory: &Path) -> io::Result<()> {
        std::fs::rename(directory.join(FILE), directory.join(BAD_FILE))
    }

    pub(super) const fn is_persistent(&self) -> bool {
        self.directory.is_some()
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) async fn overrides(&self) -> Overrides {
        self.state.lock().await.overrides.clone()
    }

    /// Changes the overrides of a client, saves all overrides and passes them to `activate`. Returns the changed
    /// overrides; empty if there was nothing to remove. The caller must let the future complete, or the saved and the
    /// active overrides may differ.
    pub(super) async fn edit(
        &self,
        client: &Subject,
        edit: OverrideEdit,
        change: &Change,
        activate: impl FnOnce(&Overrides),
    ) -> io::Result<Vec<ChangedOverride>> {
        let mut state = self.state.lock().await;
        let overrides = state.overrides.without_expired(self.now());
        let (overrides, changed) = apply(&overrides, client, edit);
        if changed.is_empty() {
            return Ok(changed);
        }
        let mut next = State { overrides, ..state.clone() };
        for ChangedOverride { old, new } in &changed {
            let [old, new] = [old, new].map(|side| side.as_ref().map(Override::to_text));
            next.add(change, self.now(), (old, new));
        }
        self.save(&mut state, next).await?;
        // Under the lock, so that the last change saved is also the last one activated.
        activate(&state.overrides);
        Ok(changed)
    }

    /// Adds a change without an override to the audit log.
    pub(super) async fn record(&self, change: &Change) -> io::Result<()> {
        let mut state = self.state.lock().await;
        let mut next = state.clone();
        next.add(change, self.now(), (None, None));
        self.save(&mut state, next).await
    }

    /// Removes expired overrides and passes the others to `activate`. The file may contain expired ones until the next
    /// save; they are removed after every load.
    pub(super) async fn remove_expired(&self, activate: impl FnOnce(&Overrides)) {
        let mut state = self.state.lock().await;
        state.overrides = state.overrides.without_expired(self.now());
        activate(&state.overrides);
    }

    /// Returns up to `max` audit entries older than the entry `before`, newest first.
    pub(super) async fn audit(&self, before: Option<u64>, max: usize) -> Vec<Entry> {
        let state = self.state.lock().await;
        let is_older = |entry: &&Arc<Entry>| before.is_none_or(|id| entry.id < id);
        state.audit.iter().rev().filter(is_older).take(max).map(|entry| (**entry).clone()).collect()
    }

    /// Writes the next state to the file, then makes it current.
    async fn save(&self, state: &mut State, next: State) -> io::Result<()> {
        if let Some(directory) = self.directory.clone() {
            let saved = next.clone();
            let write = move || {
                atomic_write::replace(&directory, FILE, |out| {
                    serde_json::to_writer(out, &saved.to_file()).map_err(io::Error::from)
                })
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
        self.last_id += 1;
        let (id, at_us) = (self.last_id, at.as_micros());
        let entry = Entry { id, at_us, change: change.clone(), old, new };
        self.audit.push_back(Arc::new(entry));
        if self.audit.len() > MAX_AUDIT {
            self.audit.pop_front();
        }
    }

    fn to_file(&self) -> SavedFileRef<'_> {
        SavedFileRef {
            version: VERSION,
            overrides: SavedOverride::all(&self.overrides),
            audit: self.audit.iter().map(Arc::as_ref).collect(),
        }
    }
}

/// Returns the overrides after a change, and the overrides that it changes.
fn apply(
    overrides: &Overrides,
    client: &Subject,
    edit: OverrideEdit,
) -> (Overrides, Vec<ChangedOverride>) {
    match edit {
        OverrideEdit::Set(new) => {
            let mut next = overrides.clone();
            let set = |new: Override| {
                let mut stored = overrides.get(client).iter();
                let old = stored.find(|stored| stored.rule == new.rule);
                let old = old.map(|old| (**old).clone());
                next = next.with(client, new.clone());
                ChangedOverride { old, new: Some(new) }
            };
            let changed = new.into_iter().map(set).collect();
            (next, changed)
        }
        OverrideEdit::Remove { rule } => {
            let stored = overrides.get(client).iter();
            let removed = stored.filter(|stored| rule.is_none() || stored.rule == rule);
            let changed = removed
                .map(|old| ChangedOverride { old: Some((**old).clone()), new: None })
                .collect();
            (overrides.without(client, rule.as_deref()), changed)
        }
    }
}

fn read(directory: &Path) -> Result<State, String> {
    let in_file = |reason: &dyn std::fmt::Display| format!("{FILE}: {reason}");
    let bytes = match std::fs::read(directory.join(FILE)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(State::default()),
        Err(error) => return Err(in_file(&error)),
    };
    let file: SavedFile = serde_json::from_slice(&bytes).map_err(|error| in_file(&error))?;
    if file.version != VERSION {
        let reason = format!("unsupported version {}; use {VERSION}", file.version);
        return Err(in_file(&reason));
    }
    let load = |saved: &SavedOverride| saved.load().map_err(|reason| in_file(&reason));
    let overrides = file.overrides.iter().map(load).collect::<Result<Overrides, String>>()?;
    let last_id = file.audit.last().map_or(0, |entry| entry.id);
    Ok(State { overrides, audit: file.audit.into_iter().map(Arc::new).collect(), last_id })
}

//! The files of the copy: `redis-nodes.json` and `redis-overrides.json`. They contain no secret.

use std::fmt::Display;
use std::io::{self, Write};
use std::num::NonZeroU32;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tollgate::Overrides;
use tracing::warn;

use crate::files::{atomic_write, bounded_read};
use crate::node::overrides::SavedOverride;

const NODES_FILE: &str = "redis-nodes.json";
const OVERRIDES_FILE: &str = "redis-overrides.json";
const VERSION: u64 = 1;
/// Maximum file size in bytes: 100 000 overrides of 10 kB.
const MAX_BYTES: u64 = 1 << 30;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodesFile {
    version: u64,
    nodes: NonZeroU32,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OverridesFile {
    version: u64,
    overrides: Vec<SavedOverride>,
}

/// Returns the saved node count; `None` if there is none. Ignores an unreadable file, with a warning.
pub(super) fn read_nodes(directory: &Path) -> Option<NonZeroU32> {
    let file = |file: NodesFile| check_version(file.version).map(|()| file.nodes);
    read(directory, NODES_FILE, file)
}

/// Returns the saved overrides; `None` if there are none. Ignores an unreadable file, with a warning.
pub(super) fn read_overrides(directory: &Path) -> Option<Overrides> {
    read(directory, OVERRIDES_FILE, |file: OverridesFile| {
        check_version(file.version)?;
        file.overrides.iter().map(SavedOverride::load).collect()
    })
}

pub(super) fn write_nodes(directory: &Path, nodes: NonZeroU32) -> io::Result<()> {
    write(directory, NODES_FILE, &NodesFile { version: VERSION, nodes })
}

pub(super) fn write_overrides(directory: &Path, overrides: &Overrides) -> io::Result<()> {
    let overrides = SavedOverride::all(overrides);
    write(directory, OVERRIDES_FILE, &OverridesFile { version: VERSION, overrides })
}

fn read<F: DeserializeOwned, T>(
    directory: &Path,
    name: &str,
    load: impl FnOnce(F) -> Result<T, String>,
) -> Option<T> {
    let path = directory.join(name);
    match std::fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        _ => {}
    }
    let text = |error: &dyn Display| error.to_string();
    let bytes = bounded_read::read(&path, MAX_BYTES);
    let file = bytes.and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| text(&error)));
    match file.and_then(load) {
        Ok(value) => Some(value),
        Err(error) => {
            let path = path.display();
            warn!(%error, %path, "unreadable file in --data-dir: ignored; it is replaced when Redis answers");
            None
        }
    }
}

fn check_version(version: u64) -> Result<(), String> {
    match version {
        VERSION => Ok(()),
        version => Err(format!("unsupported version {version}; use {VERSION}")),
    }
}

fn write(directory: &Path, name: &str, file: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(file).map_err(io::Error::other)?;
    atomic_write::replace(directory, name, |out| out.write_all(&text))
}

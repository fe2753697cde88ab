//! An override in a file of the data directory.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tollgate::{Override, Overrides, Subject};

/// An override and its client, as saved.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedOverride {
    client: String,
    text: String,
}

impl SavedOverride {
    /// Returns all overrides for a file.
    pub(crate) fn all(overrides: &Overrides) -> Vec<Self> {
        let saved = |(client, stored): (&str, &[Arc<Override>])| {
            let client = client.to_owned();
            let save = move |stored: &Arc<Override>| Self {
                client: client.clone(),
                text: stored.to_text(),
            };
            stored.iter().map(save).collect::<Vec<_>>()
        };
        overrides.after("").flat_map(saved).collect()
    }

    /// Returns the client and its override, or the reason why one of them is invalid.
    pub(crate) fn load(&self) -> Result<(Subject, Override), String> {
        let client = Subject::from_escaped(&self.client)
            .ok_or_else(|| format!("invalid client {:?}", self.client))?;
        let loaded = Override::from_text(&self.text).map_err(|error| error.to_string())?;
        Ok((client, loaded))
    }
}

//! An override in a file of the data directory.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tollgate::{Override, Subject};

/// An override and its client, as saved.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedOverride {
    client: String,
    text: String,
}

impl SavedOverride {
    pub(crate) fn new((client, saved): (&str, &Arc<Override>)) -> Self {
        Self { client: client.to_owned(), text: saved.to_text() }
    }

    /// Returns the client and its override, or the reason why one of them is invalid.
    pub(crate) fn load(&self) -> Result<(Subject, Override), String> {
        let client = Subject::from_escaped(&self.client)
            .ok_or_else(|| format!("invalid client {:?}", self.client))?;
        let loaded = Override::from_text(&self.text).map_err(|error| error.to_string())?;
        Ok((client, loaded))
    }
}

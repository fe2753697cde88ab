//! Tiers and the API keys in them.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::digest::Digest;

/// The tiers of a policy, with the digests of their API keys.
#[derive(Debug, Default)]
pub(super) struct Tiers {
    names: Vec<Box<str>>,
    by_digest: HashMap<Digest, usize, RandomState>,
}

impl Tiers {
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    pub(super) fn add_tier(&mut self, name: &str) {
        self.names.push(name.into());
    }

    /// Adds a key to the tier that was added last. If the key is already in a tier, returns the name of that
    /// tier as the error.
    pub(super) fn add_key(&mut self, digest: Digest) -> Result<(), &str> {
        let tier = self.names.len().saturating_sub(1);
        match self.by_digest.insert(digest, tier) {
            None => Ok(()),
            Some(earlier) => Err(self.names.get(earlier).map_or("", |name| name)),
        }
    }

    pub(super) fn tier_of(&self, digest: &[u8]) -> Option<&str> {
        let tier = self.by_digest.get(digest)?;
        self.names.get(*tier).map(|name| &**name)
    }
}

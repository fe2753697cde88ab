//! Which API key is of which tier.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::digest::Digest;

/// The tiers of a policy, and the digests of the API keys in them.
#[derive(Debug, Default)]
pub(super) struct Tiers {
    names: Vec<Box<str>>,
    of_digest: HashMap<Digest, usize, RandomState>,
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

    /// Puts a key into the tier that was added last, or tells which tier it is in already.
    pub(super) fn add_key(&mut self, digest: Digest) -> Result<(), &str> {
        let tier = self.names.len().saturating_sub(1);
        match self.of_digest.insert(digest, tier) {
            None => Ok(()),
            Some(earlier) => Err(self.names.get(earlier).map_or("", |name| name)),
        }
    }

    pub(super) fn of(&self, digest: &[u8]) -> Option<&str> {
        let tier = self.of_digest.get(digest)?;
        self.names.get(*tier).map(|name| &**name)
    }
}

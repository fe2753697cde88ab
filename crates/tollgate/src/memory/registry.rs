//! Registry of limits: small ids that replace the identity and parameters of a limit in every table slot.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::algorithm::{Bucket, TokenBucket};
use crate::limit::{Limit, LimitSpec};
use crate::sync::{RwLock, RwLockReadGuard};

/// Maximum number of registered identities. Keys of further limits contain the identity as text, so that a
/// flood of limit names cannot grow the registry without bound.
const MAX_IDENTITIES: usize = 65_536;

/// Identity number of keys that contain their identity as text.
pub(super) const UNREGISTERED: u32 = 0x1_FFFF;

/// Maximum number of registered token buckets, which have the ids below it: 13 bits fit a packed bucket.
/// States of further buckets are not packed.
const MAX_BUCKETS: u16 = 8192;

/// Identity number and id of a limit in one store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Registered {
    pub(super) identity: u32,
    pub(super) limit: LimitId,
}

impl Registered {
    /// Returns the parameters of `limit`, which has this registration, if its states can be packed.
    #[inline]
    pub(super) const fn bucket_of(self, limit: &Limit) -> Option<&TokenBucket> {
        if self.limit.is_bucket() { limit.parameters().as_token_bucket() } else { None }
    }
}

/// Id of a limit (identity and all parameters) in two bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct LimitId(u16);

impl LimitId {
    /// No id: all ids were in use when the limit was first used.
    pub(super) const NONE: Self = Self(u16::MAX);

    /// Returns true for a token bucket, whose states can be packed.
    #[inline]
    pub(super) const fn is_bucket(self) -> bool {
        self.0 < MAX_BUCKETS
    }

    #[inline]
    pub(super) const fn bits(self) -> u16 {
        self.0
    }

    #[inline]
    pub(super) const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }
}

/// Registry of one store. Ids are never reused.
#[derive(Debug)]
pub(super) struct Registry {
    /// Number of the store in a [`RegistryCell`](crate::limit::RegistryCell); 0 disables the cache after 2^31 stores.
    store: u64,
    entries: RwLock<Entries>,
}

#[derive(Debug, Default)]
pub(super) struct Entries {
    identities: HashMap<String, u32>,
    texts: Vec<String>,
    ids: HashMap<LimitDefinition, LimitId>,
    buckets: Vec<BucketEntry>,
    others: Vec<Limit>,
}

/// All properties that distinguish limits.
#[derive(Debug, PartialEq, Eq, Hash)]
struct LimitDefinition {
    identity: u32,
    is_named: bool,
    spec: LimitSpec,
}

/// A registered token bucket. Identity and parameters are inline because a sweep reads them for every key.
#[derive(Debug)]
struct BucketEntry {
    identity: u32,
    bucket: TokenBucket,
    limit: Box<Limit>,
}

impl Registry {
    pub(super) fn new() -> Self {
        static STORES: AtomicU64 = AtomicU64::new(1);
        let store = STORES.fetch_add(1, Ordering::Relaxed);
        // A `RegistryCell` has 31 bits for the store.
        let store = if store < 1 << 31 { store } else { 0 };
        Self { store, entries: RwLock::default() }
    }

    /// Returns the registration of a limit, and registers it if necessary.
    #[inline]
    pub(super) fn find(&self, limit: &Limit) -> Registered {
        let cell = limit.registry_cell().get();
        match unpack(cell) {
            (store, registered) if store == self.store && store != 0 => registered,
            _ => self.add(limit),
        }
    }

    #[cold]
    fn add(&self, limit: &Limit) -> Registered {
        // Inline limits are often registered although their own cache is empty.
        let known = self.entries.read().find(limit);
        let registered = known.unwrap_or_else(|| self.entries.write().add(limit));
        // Limits that are not registered are rare and not cached.
        if registered.identity != UNREGISTERED {
            limit.registry_cell().set(pack(self.store, registered));
        }
        registered
    }

    /// Registers an identity whose limit is unknown, and returns its number.
    pub(super) fn add_identity(&self, text: &str) -> u32 {
        self.entries.write().add_identity(text.to_owned())
    }

    /// Locks the entries for reading.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Entries> {
        self.entries.read()
    }
}

impl LimitDefinition {
    fn new(identity: u32, limit: &Limit) -> Self {
        Self { identity, is_named: limit.is_named(), spec: limit.unnamed_spec() }
    }
}

impl Entries {
    /// Returns the result of `add` if that would add nothing.
    fn find(&self, limit: &Limit) -> Option<Registered> {
        let identity = self.find_identity(&limit.identity())?;
        if identity == UNREGISTERED {
            return Some(Registered { identity, limit: LimitId::NONE });
        }
        let known = self.ids.get(&LimitDefinition::new(identity, limit)).copied();
        let is_full = self.next_id(limit).is_none();
        let id = known.or(is_full.then_some(LimitId::NONE))?;
        Some(Registered { identity, limit: id })
    }

    fn add(&mut self, limit: &Limit) -> Registered {
        let identity = self.add_identity(limit.identity());
        let id = match identity {
            UNREGISTERED => LimitId::NONE,
            _ => self.add_limit(identity, limit),
        };
        Registered { identity, limit: id }
    }

    fn add_identity(&mut self, text: String) -> u32 {
        if let Some(&number) = self.identities.get(&text) {
            return number;
        }
        match u32::try_from(self.texts.len()) {
            Ok(number) if self.texts.len() < MAX_IDENTITIES => {
                self.texts.push(text.clone());
                self.identities.insert(text, number);
                number
            }
            _ => UNREGISTERED,
        }
    }

    fn add_limit(&mut self, identity: u32, limit: &Limit) -> LimitId {
        let definition = LimitDefinition::new(identity, limit);
        if let Some(&id) = self.ids.get(&definition) {
            return id;
        }
        let Some(id) = self.next_id(limit) else { return LimitId::NONE };
        match limit.parameters().as_token_bucket().cloned() {
            Some(bucket) => {
                self.buckets.push(BucketEntry { identity, bucket, limit: Box::new(limit.clone()) });
            }
            None => self.others.push(limit.clone()),
        }
        self.ids.insert(definition, id);
        id
    }

    /// Returns the next free id for this kind of limit; `None` if all are in use.
    fn next_id(&self, limit: &Limit) -> Option<LimitId> {
        let is_bucket = limit.parameters().as_token_bucket().is_some();
        let id = if is_bucket {
            u16::try_from(self.buckets.len()).ok()
        } else {
            u16::try_from(self.others.len()).ok().and_then(|index| index.checked_add(MAX_BUCKETS))
        };
        let id = id.map(LimitId)?;
        (id != LimitId::NONE && id.is_bucket() == is_bucket).then_some(id)
    }

    /// Returns the number of an identity; `None` if no limit with it was ever used.
    pub(super) fn find_identity(&self, text: &str) -> Option<u32> {
        let is_full = self.texts.len() >= MAX_IDENTITIES;
        self.identities.get(text).copied().or(is_full.then_some(UNREGISTERED))
    }

    /// Returns the text of an identity; see [`Limit::identity`].
    pub(super) fn text(&self, identity: u32) -> Option<&str> {
        let index = usize::try_from(identity).ok()?;
        self.texts.get(index).map(String::as_str)
    }

    /// Returns the limit with this id.
    pub(super) fn limit(&self, id: LimitId) -> Option<&Limit> {
        match id.0.checked_sub(MAX_BUCKETS) {
            Some(index) => self.others.get(usize::from(index)),
            None => self.buckets.get(usize::from(id.0)).map(|entry| &*entry.limit),
        }
    }

    /// Returns the identity number of a registered token bucket.
    pub(super) fn identity_of(&self, bucket: LimitId) -> u32 {
        self.buckets.get(usize::from(bucket.0)).map_or(UNREGISTERED, |entry| entry.identity)
    }

    /// Creates a state of a registered token bucket.
    pub(super) fn bucket(&self, id: LimitId, at: u64, deficit: u64) -> Bucket {
        let entry = self.buckets.get(usize::from(id.0));
        entry.map_or_else(Bucket::default, |entry| entry.bucket.state(at, deficit))
    }
}

fn pack(store: u64, registered: Registered) -> u64 {
    store << 33 | u64::from(registered.identity) << 16 | u64::from(registered.limit.0)
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "extracts bit fields")]
fn unpack(cell: u64) -> (u64, Registered) {
    let identity = (cell >> 16) as u32 & UNREGISTERED;
    (cell >> 33, Registered { identity, limit: LimitId(cell as u16) })
}

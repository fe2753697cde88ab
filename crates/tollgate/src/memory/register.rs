//! The register: limits as small numbers, instead of a text and its numbers in every slot.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{RwLock, RwLockReadGuard};

use crate::algorithm::{Bucket, TokenBucket};
use crate::limit::Limit;
use crate::limit::spec::LimitSpec;

/// Scopes beyond this many are written out in their keys, so that a flood of limit names cannot grow
/// the register without bound.
const MAX_SCOPES: usize = 65_536;

/// The scope of keys that write theirs out.
pub(super) const WRITTEN_OUT: u32 = 0x1_FFFF;

/// Token buckets have the numbers below this one: 13 bits, for which a packed bucket has room. Beyond
/// these many a bucket carries its rate in its own state.
const BUCKETS: u16 = 8192;

/// A limit's numbers in one store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Registered {
    pub(super) scope: u32,
    pub(super) limit: LimitNumber,
}

/// A whole limit, its scope and all its numbers, in two bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct LimitNumber(u16);

impl LimitNumber {
    /// Of a limit that came when all numbers were given.
    pub(super) const NONE: Self = Self(u16::MAX);

    /// Whether it is a token bucket's, whose states can be packed.
    #[inline]
    pub(super) const fn is_bucket(self) -> bool {
        self.0 < BUCKETS
    }

    #[inline]
    pub(super) const fn to_bytes(self) -> [u8; 2] {
        self.0.to_be_bytes()
    }

    #[inline]
    pub(super) const fn from_bytes(bytes: [u8; 2]) -> Self {
        Self(u16::from_be_bytes(bytes))
    }
}

/// What a limit remembers of its registration: the store, the scope and the limit's number,
/// or 0.
#[derive(Debug, Default)]
pub(crate) struct RegisterCell(AtomicU64);

impl Clone for RegisterCell {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.0.load(Ordering::Relaxed)))
    }
}

/// A cache is not part of what a limit is.
impl PartialEq for RegisterCell {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for RegisterCell {}

/// A store's register. Numbers are never reused.
#[derive(Debug)]
pub(super) struct Register {
    /// Tells stores apart in a [`RegisterCell`]; 0 for a store that came too late to have a number.
    store: u64,
    entries: RwLock<Entries>,
}

#[derive(Debug, Default)]
pub(super) struct Entries {
    scopes: HashMap<String, u32>,
    texts: Vec<String>,
    numbers: HashMap<Whole, LimitNumber>,
    buckets: Vec<Bucketed>,
    others: Vec<Limit>,
}

/// What makes two limits the same.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Whole {
    scope: u32,
    is_named: bool,
    shape: LimitSpec,
}

/// A token bucket with a number, and beside it what a sweep reads for every key.
#[derive(Debug)]
struct Bucketed {
    scope: u32,
    bucket: TokenBucket,
    limit: Box<Limit>,
}

impl Register {
    pub(super) fn new() -> Self {
        static STORES: AtomicU64 = AtomicU64::new(1);
        let store = STORES.fetch_add(1, Ordering::Relaxed);
        // 31 bits are left for it in a cell.
        let store = if store < 1 << 31 { store } else { 0 };
        Self { store, entries: RwLock::default() }
    }

    /// The limit's numbers here.
    #[inline]
    pub(super) fn find(&self, limit: &Limit) -> Registered {
        let cell = limit.register_cell().0.load(Ordering::Relaxed);
        match unpack(cell) {
            (store, registered) if store == self.store && store != 0 => registered,
            _ => self.enter(limit),
        }
    }

    #[cold]
    fn enter(&self, limit: &Limit) -> Registered {
        // Known to the register if not to the limit: so it is for limits that come with requests.
        let known = self.entries.read().find(limit);
        let registered = known.unwrap_or_else(|| self.entries.write().enter(limit));
        // A limit whose scope is written out is looked up each time: it is rare.
        if registered.scope != WRITTEN_OUT {
            limit.register_cell().0.store(pack(self.store, registered), Ordering::Relaxed);
        }
        registered
    }

    /// The number of a scope whose limit is not known.
    pub(super) fn enter_scope(&self, text: &str) -> u32 {
        self.entries.write().enter_scope(text.to_owned())
    }

    /// The entries, for reading.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Entries> {
        self.entries.read()
    }
}

impl Whole {
    fn new(scope: u32, limit: &Limit) -> Self {
        Self { scope, is_named: limit.is_named(), shape: LimitSpec::of(limit) }
    }
}

impl Entries {
    /// What entering the limit would give, if it needs no entry.
    fn find(&self, limit: &Limit) -> Option<Registered> {
        let scope = self.find_scope(&limit.identity())?;
        if scope == WRITTEN_OUT {
            return Some(Registered { scope, limit: LimitNumber::NONE });
        }
        let known = self.numbers.get(&Whole::new(scope, limit)).copied();
        let is_full = self.next_number(limit).is_none();
        let number = known.or(is_full.then_some(LimitNumber::NONE))?;
        Some(Registered { scope, limit: number })
    }

    fn enter(&mut self, limit: &Limit) -> Registered {
        let scope = self.enter_scope(limit.identity());
        let number = match scope {
            WRITTEN_OUT => LimitNumber::NONE,
            _ => self.enter_limit(scope, limit),
        };
        Registered { scope, limit: number }
    }

    fn enter_scope(&mut self, text: String) -> u32 {
        if let Some(&number) = self.scopes.get(&text) {
            return number;
        }
        match u32::try_from(self.texts.len()) {
            Ok(number) if self.texts.len() < MAX_SCOPES => {
                self.texts.push(text.clone());
                self.scopes.insert(text, number);
                number
            }
            _ => WRITTEN_OUT,
        }
    }

    fn enter_limit(&mut self, scope: u32, limit: &Limit) -> LimitNumber {
        let whole = Whole::new(scope, limit);
        if let Some(&number) = self.numbers.get(&whole) {
            return number;
        }
        let Some(number) = self.next_number(limit) else { return LimitNumber::NONE };
        match limit.parameters().as_token_bucket().cloned() {
            Some(bucket) => {
                self.buckets.push(Bucketed { scope, bucket, limit: Box::new(limit.clone()) });
            }
            None => self.others.push(limit.clone()),
        }
        self.numbers.insert(whole, number);
        number
    }

    /// The number of the next limit of this kind; none if all are given.
    fn next_number(&self, limit: &Limit) -> Option<LimitNumber> {
        let is_bucket = limit.parameters().as_token_bucket().is_some();
        let number = if is_bucket {
            u16::try_from(self.buckets.len()).ok()
        } else {
            u16::try_from(self.others.len()).ok().and_then(|nth| nth.checked_add(BUCKETS))
        };
        let number = number.map(LimitNumber)?;
        (number != LimitNumber::NONE && number.is_bucket() == is_bucket).then_some(number)
    }

    /// The scope of this text; none if no limit of it was ever entered.
    pub(super) fn find_scope(&self, text: &str) -> Option<u32> {
        let is_full = self.texts.len() >= MAX_SCOPES;
        self.scopes.get(text).copied().or(is_full.then_some(WRITTEN_OUT))
    }

    /// The scope's text, as [`Limit::identity`] wrote it.
    pub(super) fn text(&self, scope: u32) -> Option<&str> {
        let index = usize::try_from(scope).ok()?;
        self.texts.get(index).map(String::as_str)
    }

    /// The limit of this number.
    pub(super) fn limit(&self, number: LimitNumber) -> Option<&Limit> {
        match number.0.checked_sub(BUCKETS) {
            Some(nth) => self.others.get(usize::from(nth)),
            None => self.buckets.get(usize::from(number.0)).map(|entry| &*entry.limit),
        }
    }

    /// The scope that a token bucket was entered with.
    pub(super) fn scope_of(&self, bucket: LimitNumber) -> u32 {
        self.buckets.get(usize::from(bucket.0)).map_or(WRITTEN_OUT, |entry| entry.scope)
    }

    /// A state of this token bucket.
    pub(super) fn bucket(&self, number: LimitNumber, at: u64, deficit: u64) -> Bucket {
        let entry = self.buckets.get(usize::from(number.0));
        entry.map_or_else(Bucket::default, |entry| entry.bucket.state(at, deficit))
    }
}

fn pack(store: u64, registered: Registered) -> u64 {
    store << 33 | u64::from(registered.scope) << 16 | u64::from(registered.limit.0)
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the parts of what pack joined")]
fn unpack(cell: u64) -> (u64, Registered) {
    let scope = (cell >> 16) as u32 & WRITTEN_OUT;
    (cell >> 33, Registered { scope, limit: LimitNumber(cell as u16) })
}

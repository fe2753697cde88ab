//! The register: limits as small numbers, instead of a text and a rate in every slot.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{RwLock, RwLockReadGuard};

use crate::algorithm::{Bucket, Numbers, TokenBucket};
use crate::limit::Limit;

/// Scopes beyond this many are written out in their keys, so that a flood of limit names cannot grow
/// the register without bound.
const MAX_SCOPES: usize = 65_536;

/// The scope of keys that write theirs out.
pub(super) const WRITTEN_OUT: u32 = 0x1_FFFF;

/// The rates of token buckets, numbered together with their scope in 13 bits. Beyond these many a
/// bucket carries its rate in its own state.
const MAX_RATES: usize = 8192;

/// No number for the rate.
const UNRATED: u16 = u16::MAX;

/// A limit's numbers in one store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Registered {
    pub(super) scope: u32,
    pub(super) rate: Option<RateNumber>,
}

/// A scope and a token bucket's numbers, in two bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RateNumber(u16);

impl RateNumber {
    #[inline]
    pub(super) const fn to_bytes(self) -> [u8; 2] {
        self.0.to_be_bytes()
    }

    #[inline]
    pub(super) const fn from_bytes(bytes: [u8; 2]) -> Self {
        Self(u16::from_be_bytes(bytes))
    }
}

/// What a limit remembers of its registration: the store, the scope and the rate, or 0.
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
    rates: HashMap<Rate, RateNumber>,
    numbered: Vec<Rate>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Rate {
    scope: u32,
    bucket: TokenBucket,
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

    /// The entries, for reading.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Entries> {
        self.entries.read()
    }
}

impl Entries {
    /// What entering the limit would give, if it needs no entry.
    fn find(&self, limit: &Limit) -> Option<Registered> {
        let scope = self.find_scope(&limit.scope())?;
        let bucket = limit.numbers().as_token_bucket().filter(|_| scope != WRITTEN_OUT);
        let Some(bucket) = bucket else { return Some(Registered { scope, rate: None }) };
        match self.rates.get(&Rate { scope, bucket: bucket.clone() }) {
            Some(&rate) => Some(Registered { scope, rate: Some(rate) }),
            None if self.numbered.len() < MAX_RATES => None,
            None => Some(Registered { scope, rate: None }),
        }
    }

    fn enter(&mut self, limit: &Limit) -> Registered {
        let scope = self.enter_scope(limit.scope());
        let rate = match limit.numbers() {
            Numbers::TokenBucket(bucket) if scope != WRITTEN_OUT => {
                self.enter_rate(Rate { scope, bucket: bucket.clone() })
            }
            _ => None,
        };
        Registered { scope, rate }
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

    fn enter_rate(&mut self, rate: Rate) -> Option<RateNumber> {
        if let Some(&number) = self.rates.get(&rate) {
            return Some(number);
        }
        let next = u16::try_from(self.numbered.len()).ok();
        let number = RateNumber(next.filter(|_| self.numbered.len() < MAX_RATES)?);
        self.numbered.push(rate.clone());
        self.rates.insert(rate, number);
        Some(number)
    }

    /// The scope of this text; none if no limit of it was ever entered.
    pub(super) fn find_scope(&self, text: &str) -> Option<u32> {
        let is_full = self.texts.len() >= MAX_SCOPES;
        self.scopes.get(text).copied().or(is_full.then_some(WRITTEN_OUT))
    }

    /// The scope's text, as [`Limit::scope`] wrote it.
    pub(super) fn text(&self, scope: u32) -> Option<&str> {
        let index = usize::try_from(scope).ok()?;
        self.texts.get(index).map(String::as_str)
    }

    /// The scope that a rate was entered with.
    pub(super) fn scope_of(&self, rate: RateNumber) -> u32 {
        self.numbered.get(usize::from(rate.0)).map_or(WRITTEN_OUT, |rate| rate.scope)
    }

    /// A bucket of this rate.
    pub(super) fn bucket(&self, rate: RateNumber, at: u64, deficit: u64) -> Bucket {
        let rate = self.numbered.get(usize::from(rate.0));
        rate.map_or_else(Bucket::default, |rate| rate.bucket.state(at, deficit))
    }
}

fn pack(store: u64, registered: Registered) -> u64 {
    let rate = registered.rate.map_or(UNRATED, |rate| rate.0);
    store << 33 | u64::from(registered.scope) << 16 | u64::from(rate)
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the parts of what pack joined")]
fn unpack(cell: u64) -> (u64, Registered) {
    let rate = cell as u16;
    let rate = (rate != UNRATED).then_some(RateNumber(rate));
    (cell >> 33, Registered { scope: (cell >> 16) as u32 & WRITTEN_OUT, rate })
}

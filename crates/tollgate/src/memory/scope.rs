//! Scopes: which limit a key belongs to, as a small number instead of a text in every key.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use parking_lot::RwLock;

use crate::limit::{Algorithm, Limit};

/// Scopes beyond this many are written out in their keys, so that a flood of limit names cannot grow
/// the register without bound.
const MAX_NUMBERED: u32 = 65_536;

/// The scope of keys that write theirs out.
pub(super) const WRITTEN_OUT: u32 = u32::MAX;

/// A limit's memory of its number in the store that used it last.
#[derive(Debug, Default)]
pub(crate) struct ScopeCell(AtomicU64);

impl Clone for ScopeCell {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.0.load(Ordering::Relaxed)))
    }
}

/// A cache is not part of what a limit is.
impl PartialEq for ScopeCell {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ScopeCell {}

/// A store's register of scopes. Numbers are never reused.
#[derive(Debug)]
pub(super) struct Scopes {
    /// Tells stores apart in a [`ScopeCell`]; never 0, which an unused cell holds.
    store: u32,
    numbered: RwLock<Numbered>,
}

#[derive(Debug, Default)]
struct Numbered {
    numbers: HashMap<String, u32>,
    texts: Vec<String>,
}

impl Scopes {
    pub(super) fn new() -> Self {
        static STORES: AtomicU32 = AtomicU32::new(1);
        Self { store: STORES.fetch_add(1, Ordering::Relaxed), numbered: RwLock::default() }
    }

    /// The limit's number here, or [`WRITTEN_OUT`].
    #[inline]
    pub(super) fn number(&self, limit: &Limit) -> u32 {
        let cached = limit.scope_cell().0.load(Ordering::Relaxed);
        let (store, number) = unpack(cached);
        if store == self.store { number } else { self.find_number(limit) }
    }

    #[cold]
    fn find_number(&self, limit: &Limit) -> u32 {
        let text = limit.scope();
        let known = self.numbered.read().numbers.get(&text).copied();
        let number = known.unwrap_or_else(|| self.numbered.write().register(text));
        // An unnumbered limit is looked up each time: it is rare, and its cell may serve elsewhere.
        if number != WRITTEN_OUT {
            limit.scope_cell().0.store(pack(self.store, number), Ordering::Relaxed);
        }
        number
    }

    /// The scope's text, as [`Limit::scope`] wrote it.
    pub(super) fn text(&self, number: u32) -> Option<String> {
        let index = usize::try_from(number).ok()?;
        self.numbered.read().texts.get(index).cloned()
    }
}

impl Numbered {
    fn register(&mut self, text: String) -> u32 {
        if let Some(&number) = self.numbers.get(&text) {
            return number;
        }
        match u32::try_from(self.texts.len()) {
            Ok(number) if number < MAX_NUMBERED => {
                self.texts.push(text.clone());
                self.numbers.insert(text, number);
                number
            }
            _ => WRITTEN_OUT,
        }
    }
}

/// The rule, limit and algorithm that a scope's text names.
pub(super) fn parse(text: &str) -> Option<(String, String, Algorithm)> {
    let algorithm = match text.as_bytes().first()? {
        b't' => Algorithm::TokenBucket,
        b'w' => Algorithm::SlidingWindow,
        b'c' => Algorithm::SlidingCounter,
        b'f' | b'a' => Algorithm::FixedWindow,
        _ => Algorithm::Block,
    };
    let (rule, limit) = text.get(1..)?.split_once('/')?;
    Some((rule.to_owned(), limit.to_owned(), algorithm))
}

fn pack(store: u32, number: u32) -> u64 {
    u64::from(store) << 32 | u64::from(number)
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves of what pack joined")]
fn unpack(packed: u64) -> (u32, u32) {
    ((packed >> 32) as u32, packed as u32)
}

//! Cache of a limit's registration in a memory store.

use crate::sync::atomic::{AtomicU64, Ordering};

/// Number by which the memory store that used a limit last finds its registration; 0 if there is none. Only that store
/// knows its meaning.
#[derive(Debug, Default)]
pub(crate) struct RegistryCell(AtomicU64);

impl RegistryCell {
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set(&self, registration: u64) {
        self.0.store(registration, Ordering::Relaxed);
    }
}

impl Clone for RegistryCell {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.get()))
    }
}

/// Always equal: the cache is not part of a limit's value.
impl PartialEq for RegistryCell {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for RegistryCell {}

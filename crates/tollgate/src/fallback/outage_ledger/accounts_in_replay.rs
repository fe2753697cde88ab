//! Accounts in replay: permits released and keys reset while an account is out of the ledger.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::{Account, AccountKey};
use crate::algorithm::PermitId;
use crate::time::Timestamp;

/// The keys of the accounts that have left the ledger, with the changes since then.
#[derive(Debug, Default)]
pub(super) struct AccountsInReplay {
    changes: HashMap<Arc<AccountKey>, Changes, RandomState>,
}

/// Changes of one account during its replay. They apply to its debits that did not run.
#[derive(Debug, Default)]
struct Changes {
    is_reset: bool,
    released: HashSet<PermitId, RandomState>,
}

impl AccountsInReplay {
    pub(super) fn begin(&mut self, key: &Arc<AccountKey>) {
        self.changes.insert(Arc::clone(key), Changes::default());
    }

    /// Records that a key was reset. Has no effect if its account is not in replay.
    pub(super) fn reset(&mut self, key: &AccountKey) {
        if let Some(changes) = self.changes.get_mut(key) {
            changes.is_reset = true;
        }
    }

    /// Records that a permit was released. Has no effect if the account is not in replay.
    pub(super) fn release(&mut self, key: &AccountKey, permit: PermitId) {
        if let Some(changes) = self.changes.get_mut(key) {
            changes.released.insert(permit);
        }
    }

    /// Ends the replay of an account. Returns the part of `rest` that still counts after the changes.
    pub(super) fn end(
        &mut self,
        key: &AccountKey,
        rest: Option<Account>,
        now: Timestamp,
    ) -> Option<Account> {
        let changes = self.changes.remove(key).unwrap_or_default();
        if self.changes.is_empty() {
            // Releases the memory of a large batch.
            self.changes = HashMap::default();
        }
        let mut account = rest.filter(|_| !changes.is_reset)?;
        account.admissions.release_all(|permit| changes.released.contains(&permit));
        Some(account).filter(|account| !account.is_expired(now))
    }
}

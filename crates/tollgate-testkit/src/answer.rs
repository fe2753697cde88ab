//! What a store or an oracle answers, as plain numbers to compare and to write down.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tollgate::{Status, Verdict};

/// What is asked of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Operation {
    /// Take or refuse.
    Take {
        /// How much.
        cost: u64,
    },
    /// Take or refuse, for a permit; a take where there are no slots.
    Hold {
        /// How much.
        cost: u64,
        /// Whose, not 0.
        permit: u64,
    },
    /// Give a permit's slots back; answered by the figures after.
    Release {
        /// Whose.
        permit: u64,
    },
    /// Let a permit's slots last as long again; answered by the figures after.
    Renew {
        /// Whose.
        permit: u64,
    },
    /// Tell, and change nothing.
    Peek {
        /// How much.
        cost: u64,
    },
    /// Give back.
    Refund {
        /// How much.
        cost: u64,
    },
    /// Take without asking, as of some time ago.
    Debit {
        /// How much.
        cost: u64,
        /// How long ago.
        age_us: u64,
    },
    /// Refuse all takes for a while; answered by the figures after.
    Pause {
        /// How long.
        length_us: u64,
    },
    /// Forget the key; answered by the figures after.
    Reset,
}

/// The answer about one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Whether it passes.
    pub verdict: VerdictKind,
    /// How long to wait, where waiting helps and is needed.
    pub retry_after_us: Option<u64>,
    /// What is used.
    pub count: u64,
    /// What could be taken.
    pub remaining: u64,
    /// The time until full.
    pub reset_after_us: u64,
}

/// A verdict without its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum VerdictKind {
    Allow,
    Deny,
    Never,
}

impl From<&Status<'_>> for Answer {
    fn from(status: &Status<'_>) -> Self {
        let verdict = match status.verdict() {
            Verdict::Allow => VerdictKind::Allow,
            Verdict::Deny { .. } => VerdictKind::Deny,
            Verdict::Never => VerdictKind::Never,
        };
        Self {
            verdict,
            retry_after_us: status.verdict().retry_after().map(micros),
            count: status.count(),
            remaining: status.remaining(),
            reset_after_us: micros(status.reset_after()),
        }
    }
}

impl Answer {
    /// Whether it passes.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.verdict == VerdictKind::Allow
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

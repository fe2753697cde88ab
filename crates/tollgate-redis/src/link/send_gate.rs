//! The gate of a command: either the link sends it, or its caller withdraws it, never both.

use crate::failure::Failure;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU8, Ordering};

const UNSENT: u8 = 0;
const SENDING: u8 = 1;
const WITHDRAWN: u8 = 2;

/// Decides between sending a command and withdrawing it. A withdrawn command never reaches the server.
#[derive(Debug, Default)]
pub(crate) struct SendGate {
    state: AtomicU8,
    /// The last error of a server that cannot run the command yet. Not a backlog of this process.
    refusal: Mutex<Option<Failure>>,
}

impl SendGate {
    /// Withdraws the command. Returns false if a part of it may have been sent.
    pub(crate) fn withdraw(&self) -> bool {
        self.swap(UNSENT, WITHDRAWN) || self.is_withdrawn()
    }

    pub(crate) fn is_withdrawn(&self) -> bool {
        self.state.load(Ordering::Acquire) == WITHDRAWN
    }

    /// Marks the command as sent, before the socket accepts a byte. Returns false if it is withdrawn.
    pub(crate) fn begin_sending(&self) -> bool {
        self.swap(UNSENT, SENDING) || !self.is_withdrawn()
    }

    /// Marks the command as unsent: the socket accepted no byte of it, or the reply proves that it has not run.
    pub(crate) fn mark_unsent(&self) {
        self.swap(SENDING, UNSENT);
    }

    /// Records that a server cannot run the command yet.
    pub(crate) fn refuse(&self, failure: Failure) {
        *self.refusal.lock() = Some(failure);
    }

    pub(crate) fn refusal(&self) -> Option<Failure> {
        self.refusal.lock().clone()
    }

    fn swap(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sent_command_cannot_be_withdrawn() {
        let gate = SendGate::default();
        assert!(gate.begin_sending());
        assert!(!gate.withdraw());
        gate.mark_unsent();
        assert!(gate.withdraw() && gate.withdraw());
    }

    #[test]
    fn withdrawn_command_is_not_sent() {
        let gate = SendGate::default();
        assert!(gate.withdraw());
        gate.mark_unsent();
        assert!(!gate.begin_sending());
    }
}

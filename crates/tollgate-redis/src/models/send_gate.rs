//! Models of the gate between a call and the callers that withdraw it.

use std::sync::Arc;

use tollgate::models::shuttle::thread;

use crate::link::SendGate;

/// The link begins to send a call while two callers withdraw it: either it is sent, or all callers know that it is not.
pub(super) fn call_is_sent_or_withdrawn() {
    let gate = Arc::new(SendGate::default());
    let withdraw = || {
        let gate = Arc::clone(&gate);
        thread::spawn(move || gate.withdraw())
    };
    let callers = [withdraw(), withdraw()];
    let is_sent = gate.begin_sending();
    let are_withdrawn = callers.map(|caller| caller.join().unwrap());
    assert_eq!(are_withdrawn, [!is_sent; 2]);
    assert_eq!(gate.is_withdrawn(), !is_sent);
}

/// The socket accepts no byte at first, so the call returns to unsent and is sent again: as above.
pub(super) fn call_that_returns_to_unsent_is_sent_or_withdrawn() {
    let gate = Arc::new(SendGate::default());
    let caller = {
        let gate = Arc::clone(&gate);
        thread::spawn(move || gate.withdraw() || gate.withdraw())
    };
    let mut is_sent = false;
    for accepts in [false, true] {
        if gate.begin_sending() {
            is_sent = accepts;
            if !accepts {
                gate.mark_unsent();
            }
        }
    }
    assert_eq!(caller.join().unwrap(), !is_sent);
}

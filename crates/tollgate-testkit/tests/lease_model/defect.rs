//! Rules of the protocol that can be broken on purpose, to show that the model finds out.

/// A broken rule. The model must find a counterexample for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Defect {
    /// The store debits a lease like a take, without what refills until the lease ends.
    PlainDebit,
    /// The store counts takes from a sliding window for the window only. The numbers of the model say so.
    PlainLog,
    /// A node spends leases after their end.
    KeptPastEnd,
    /// A node counts the hold from the reply, and not from before the request.
    HoldFromReply,
    /// A lease ends after the hold, also if its window ends before.
    KeptPastWindow,
    /// A node reads at the reply, and not before the request, which events it has received.
    EventsFromReply,
    /// A node ignores its wall clock.
    MonotonicClockOnly,
    /// A node ignores events.
    EventsIgnored,
    /// A node returns what it has not spent to the store, and sends that twice, because the first reply was lost.
    UnspentReturnedTwice,
    /// The bound does not allow for what a failover loses.
    FailoverIsFree,
}

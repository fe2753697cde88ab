//! The verbs of a limiter: what a call does with the cost of a request.

/// What a call does with the cost of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Takes the cost from every limit, or from none.
    Take,
    /// Returns what `Take` would return and consumes nothing.
    Peek,
    /// Returns the cost to every limit, never above full.
    Refund,
    /// Peeks at every limit and takes one slot of each concurrency limit. The caller charges the cost with
    /// [`Debit`](Verb::Debit) once it is known.
    Admit,
    /// Takes the cost even if a limit is exceeded, down to empty. Takes no slots.
    Debit,
}

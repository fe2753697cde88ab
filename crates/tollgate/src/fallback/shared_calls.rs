//! Calls of the shared store, and their results for the breaker and the listener.

use super::FallbackStore;
use super::breaker::CallPermission;
use super::event::StoreEvent;
use super::local_decisions::Operation;
use crate::decision::{Decision, Source};
use crate::plan::Plan;
use crate::store::{Store, StoreError, StoreErrorKind};
use crate::time::Clock;

impl<S: Store, C: Clock, L: Store> FallbackStore<S, C, L> {
    /// Calls the shared store, and records the result for the breaker.
    pub(super) async fn call_shared<'a>(
        &self,
        operation: Operation,
        plan: &Plan<'a>,
    ) -> Result<Decision<'a>, StoreError> {
        let permission = self.breaker.permission();
        let reply = operation.apply(&self.store, plan).await;
        reply
            .inspect(|decision| self.record_success(decision))
            .inspect_err(|error| self.record_failure(permission, error))
    }

    /// Records a reply. One from a cache in front of the store does not count as a success.
    pub(super) fn record_success(&self, decision: &Decision<'_>) {
        if decision.source() == Source::Store {
            self.breaker.record_success();
        }
    }

    /// Reports a call that was not sent, because too many wait.
    pub(super) fn report_overload(&self, error: StoreError) -> StoreError {
        self.listener.notify(StoreEvent::Overloaded(&error));
        error
    }

    /// Records a failed call. An overloaded one is not a failure of the store.
    pub(super) fn record_failure(&self, permission: CallPermission, error: &StoreError) {
        if is_overloaded(error) {
            return;
        }
        // An invalid cursor is the caller's mistake.
        if error.kind() != StoreErrorKind::Cursor {
            self.listener.notify(StoreEvent::Failed(error));
        }
        // An unreadable value is a fault of one key, not of the store.
        if error.is_transient()
            && let Some(failures) = self.breaker.record_failure(permission, self.clock.now())
        {
            let nodes = self.nodes();
            let _ = self.counters.take();
            self.listener.notify(StoreEvent::Lost { failures, reason: error, nodes });
        }
    }

    /// Makes a call that only the shared store can serve, unless the breaker is open.
    pub(super) async fn call_shared_only<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.ensure_available()?;
        let permission = self.breaker.permission();
        match call.await {
            Ok(reply) => {
                self.breaker.record_success();
                Ok(reply)
            }
            Err(error) if is_overloaded(&error) => Err(self.report_overload(error)),
            Err(error) => {
                self.record_failure(permission, &error);
                Err(error)
            }
        }
    }
}

pub(super) fn is_overloaded(error: &StoreError) -> bool {
    error.kind() == StoreErrorKind::Overloaded
}

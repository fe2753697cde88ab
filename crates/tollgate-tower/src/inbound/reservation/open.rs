//! An open reservation: renewed while its request is served, and settled once.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tollgate::policy::Prices;
use tollgate::reservation::{FinalCosts, Record, ReservationToken};
use tollgate::{ActivePolicy, Costs, Observer, Store};

use super::final_amounts::{ResponseOutcome, final_costs};
use super::settings::no_costs;
use crate::background::run_in_background;
use crate::inbound::settings::Settings;

/// The shortest interval of renewals. A ttl below 3 ms would result in a busy loop.
const MIN_RENEWAL_INTERVAL: Duration = Duration::from_millis(1);

/// A reservation that is not settled. Dropping it settles it.
pub(super) struct OpenReservation<S: Store + 'static, O: Observer + 'static> {
    settings: Arc<Settings<S, O>>,
    /// The policy that admitted the request, for its prices.
    policy: Arc<ActivePolicy<O::Handles>>,
    token: ReservationToken,
    estimate: Costs,
    renewal: Option<AbortHandle>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The service has not received the request.
    Admitted,
    /// The service has received the request.
    Serving,
    Settled,
}

impl<S: Store + 'static, O: Observer + 'static> OpenReservation<S, O> {
    pub(super) fn new(
        settings: &Arc<Settings<S, O>>,
        policy: &Arc<ActivePolicy<O::Handles>>,
        record: &Record,
    ) -> Self {
        let ttl = record.expires_at().as_micros().saturating_sub(record.taken_at().as_micros());
        let interval = (Duration::from_micros(ttl) / 3).max(MIN_RENEWAL_INTERVAL);
        let token = record.token();
        let renewal = Handle::try_current().ok().map(|runtime| {
            runtime.spawn(renew(Arc::clone(settings), token, interval)).abort_handle()
        });
        let (settings, policy) = (Arc::clone(settings), Arc::clone(policy));
        let estimate = record.costs().clone();
        Self { settings, policy, token, estimate, renewal, state: State::Admitted }
    }

    pub(super) fn settings(&self) -> &Settings<S, O> {
        &self.settings
    }

    pub(super) fn prices(&self) -> &Prices {
        self.policy.policy().prices()
    }

    pub(super) fn on_service_call(&mut self) {
        self.state = State::Serving;
    }

    /// Settles in the background. Units without a known amount depend on the response: see [`final_costs`].
    pub(super) fn settle(mut self, known: Costs, response: ResponseOutcome) {
        let finals = final_costs(&self.estimate, known, response);
        self.settle_with(finals);
    }

    fn settle_with(&mut self, finals: FinalCosts) {
        self.state = State::Settled;
        if let Some(renewal) = &self.renewal {
            renewal.abort();
        }
        let (settings, token) = (Arc::clone(&self.settings), self.token);
        run_in_background(async move {
            if let Err(error) = settings.limiter.settle(&token, None, &finals).await {
                settings.report_error(&error);
            }
        });
    }
}

/// The client disconnected before the response. If the service received the request, it may have used the whole estimate,
/// which is therefore charged; otherwise only the requests are.
impl<S: Store + 'static, O: Observer + 'static> Drop for OpenReservation<S, O> {
    fn drop(&mut self) {
        let outcome = match self.state {
            State::Settled => return,
            State::Admitted => ResponseOutcome::Failure,
            State::Serving => ResponseOutcome::Success,
        };
        self.settle_with(final_costs(&self.estimate, no_costs(), outcome));
    }
}

/// Renews the reservation periodically, for requests that take longer than its time to live.
async fn renew<S: Store, O: Observer>(
    settings: Arc<Settings<S, O>>,
    token: ReservationToken,
    interval: Duration,
) {
    loop {
        tokio::time::sleep(interval).await;
        if let Ok(None) = settings.limiter.renew_reservation(&token, None).await {
            return;
        }
    }
}

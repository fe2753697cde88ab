//! Runs all services in interleaved batches, round by round.

use std::time::Instant;

use axum::Router;
use axum::extract::Request;
use tokio::runtime::Builder;
use tower_service::Service;

use super::candidate::{Candidate, request};
use crate::Outcome;
use crate::rounds::Rounds;

/// Size of the benchmark.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    pub(super) rounds: u32,
    pub(super) requests: u32,
    /// Numbers of clients, one per table.
    pub(super) clients: [u32; 2],
}

impl Scale {
    pub(super) const FULL: Self = Self { rounds: 15, requests: 200_000, clients: [1, 10_000] };
    pub(super) const QUICK: Self = Self { rounds: 3, requests: 10_000, clients: [1, 1_000] };
}

/// Measures nanoseconds per request with this many clients, in the order of [`Candidate::ALL`].
pub(super) fn measure(scale: Scale, clients: u32) -> Outcome<Vec<(Candidate, Rounds)>> {
    let runtime = Builder::new_current_thread().build()?;
    let mut figures: Vec<_> = Vec::new();
    let mut routers: Vec<Router> = Vec::new();
    for candidate in Candidate::ALL {
        routers.push(candidate.router(clients)?);
        figures.push((candidate, Rounds::default()));
    }
    // The first round only fills the maps.
    for round in 0..=scale.rounds {
        let nanos = runtime.block_on(run_round(&mut routers, scale.requests, clients))?;
        if round > 0 {
            figures.iter_mut().zip(nanos).for_each(|((_, rounds), nanos)| rounds.push(nanos));
        }
    }
    Ok(figures)
}

/// Runs one round in batches of 1000 requests per service, so that a disturbance of some
/// milliseconds affects all services. Returns nanoseconds per request.
async fn run_round(routers: &mut [Router], requests: u32, clients: u32) -> Outcome<Vec<f64>> {
    let mut nanos = vec![0; routers.len()];
    for first in (0..requests).step_by(BATCH as usize) {
        for (router, nanos) in routers.iter_mut().zip(&mut nanos) {
            *nanos += batch(router, first, clients).await?;
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "seconds in nanoseconds are far below 2^53")]
    let each = |nanos: u128| nanos as f64 / f64::from(requests);
    Ok(nanos.into_iter().map(each).collect())
}

const BATCH: u32 = 1000;

/// Runs one batch of requests, which are created before the timing starts. Returns nanoseconds.
async fn batch(router: &mut Router, first: u32, clients: u32) -> Outcome<u128> {
    let clients = (first..first + BATCH).map(|nth| nth.wrapping_mul(7919) % clients);
    let requests: Vec<Request> = clients.map(request).collect::<Outcome<_>>()?;
    let started = Instant::now();
    for request in requests {
        let response = router.call(request).await?;
        if response.status() != 200 {
            return Err(format!("unexpected response status {}", response.status()).into());
        }
    }
    Ok(started.elapsed().as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_service_responds_to_every_request() {
        let scale = Scale { rounds: 1, requests: 1000, clients: [1, 10] };
        let figures = measure(scale, 10).unwrap();
        assert_eq!(figures.len(), Candidate::ALL.len());
        assert!(figures.iter().all(|(_, rounds)| rounds.median() > 0.0));
    }
}

//! Everyone's turn, round by round.

use std::time::Instant;

use axum::Router;
use axum::extract::Request;
use tokio::runtime::Builder;
use tower_service::Service;

use super::contender::{Contender, request};
use crate::Outcome;
use crate::rounds::Rounds;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    pub(super) rounds: u32,
    pub(super) requests: u32,
    pub(super) peers: u32,
}

impl Scale {
    pub(super) const FULL: Self = Self { rounds: 15, requests: 200_000, peers: 10_000 };
    pub(super) const QUICK: Self = Self { rounds: 3, requests: 10_000, peers: 1_000 };
}

/// Nanoseconds a request, in the order of [`Contender::ALL`].
pub(super) fn measure(scale: Scale) -> Outcome<Vec<(Contender, Rounds)>> {
    let runtime = Builder::new_current_thread().build()?;
    let mut figures: Vec<_> = Vec::new();
    let mut routers: Vec<Router> = Vec::new();
    for contender in Contender::ALL {
        routers.push(contender.router()?);
        figures.push((contender, Rounds::default()));
    }
    // The first round fills the maps.
    for round in 0..=scale.rounds {
        for (router, (_, rounds)) in routers.iter_mut().zip(&mut figures) {
            let nanos = runtime.block_on(pass(router, scale))?;
            if round > 0 {
                rounds.push(nanos);
            }
        }
    }
    Ok(figures)
}

/// Requests are made before they are timed, a thousand at a time so that they stay in the cache.
async fn pass(router: &mut Router, scale: Scale) -> Outcome<f64> {
    const BATCH: u32 = 1000;
    let mut nanos = 0;
    for first in (0..scale.requests).step_by(BATCH as usize) {
        let peers = (first..first + BATCH).map(|nth| nth.wrapping_mul(7919) % scale.peers);
        let requests: Vec<Request> = peers.map(request).collect::<Outcome<_>>()?;
        let begun = Instant::now();
        for request in requests {
            let response = router.call(request).await?;
            if response.status() != 200 {
                return Err(format!("a request was answered {}", response.status()).into());
            }
        }
        nanos += begun.elapsed().as_nanos();
    }
    #[expect(clippy::cast_precision_loss, reason = "seconds in nanoseconds are far below 2^53")]
    let nanos = nanos as f64;
    Ok(nanos / f64::from(scale.requests))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_answers_every_request() {
        let scale = Scale { rounds: 1, requests: 1000, peers: 10 };
        let figures = measure(scale).unwrap();
        assert_eq!(figures.len(), Contender::ALL.len());
        assert!(figures.iter().all(|(_, rounds)| rounds.median() > 0.0));
    }
}

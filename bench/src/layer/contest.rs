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
    /// How many clients there are, table by table.
    pub(super) peers: [u32; 2],
}

impl Scale {
    pub(super) const FULL: Self = Self { rounds: 15, requests: 200_000, peers: [1, 10_000] };
    pub(super) const QUICK: Self = Self { rounds: 3, requests: 10_000, peers: [1, 1_000] };
}

/// Nanoseconds a request of so many clients, in the order of [`Contender::ALL`].
pub(super) fn measure(scale: Scale, peers: u32) -> Outcome<Vec<(Contender, Rounds)>> {
    let runtime = Builder::new_current_thread().build()?;
    let mut figures: Vec<_> = Vec::new();
    let mut routers: Vec<Router> = Vec::new();
    for contender in Contender::ALL {
        routers.push(contender.router(peers)?);
        figures.push((contender, Rounds::default()));
    }
    // The first round fills the maps.
    for round in 0..=scale.rounds {
        let nanos = runtime.block_on(by_turns(&mut routers, scale.requests, peers))?;
        if round > 0 {
            figures.iter_mut().zip(nanos).for_each(|((_, rounds), nanos)| rounds.push(nanos));
        }
    }
    Ok(figures)
}

/// A round: everyone answers a thousand requests, then a thousand more, so that what slows the machine for some
/// milliseconds slows all.
async fn by_turns(routers: &mut [Router], requests: u32, peers: u32) -> Outcome<Vec<f64>> {
    let mut nanos = vec![0; routers.len()];
    for first in (0..requests).step_by(BATCH as usize) {
        for (router, nanos) in routers.iter_mut().zip(&mut nanos) {
            *nanos += batch(router, first, peers).await?;
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "seconds in nanoseconds are far below 2^53")]
    let each = |nanos: u128| nanos as f64 / f64::from(requests);
    Ok(nanos.into_iter().map(each).collect())
}

const BATCH: u32 = 1000;

/// Nanoseconds for requests that are made before they are timed.
async fn batch(router: &mut Router, first: u32, peers: u32) -> Outcome<u128> {
    let peers = (first..first + BATCH).map(|nth| nth.wrapping_mul(7919) % peers);
    let requests: Vec<Request> = peers.map(request).collect::<Outcome<_>>()?;
    let begun = Instant::now();
    for request in requests {
        let response = router.call(request).await?;
        if response.status() != 200 {
            return Err(format!("a request was answered {}", response.status()).into());
        }
    }
    Ok(begun.elapsed().as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_answers_every_request() {
        let scale = Scale { rounds: 1, requests: 1000, peers: [1, 10] };
        let figures = measure(scale, 10).unwrap();
        assert_eq!(figures.len(), Contender::ALL.len());
        assert!(figures.iter().all(|(_, rounds)| rounds.median() > 0.0));
    }
}

//! `grpc.health.v1.Health`: whether this node should receive requests.

use std::pin::{Pin, pin};
use std::sync::Arc;

use futures_util::Stream;
use futures_util::stream::unfold;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::Health;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::proto::SERVICE_NAME;
use crate::api::Service;
use crate::listener::Drain;

type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

/// The health service.
#[derive(Debug)]
pub(super) struct HealthChecks {
    service: Arc<Service>,
}

/// The state of a watched status.
struct Watch {
    service: Arc<Service>,
    is_known: bool,
    sent: Option<i32>,
    /// Ends the stream, so that it does not delay the shutdown.
    drain: Option<Drain>,
}

impl HealthChecks {
    pub(super) const fn new(service: Arc<Service>) -> Self {
        Self { service }
    }
}

#[tonic::async_trait]
impl Health for HealthChecks {
    type WatchStream = WatchStream;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let name = &request.get_ref().service;
        if !is_known(name) {
            return Err(Status::not_found("unknown service; use an empty name for the server"));
        }
        Ok(Response::new(response(status(&self.service))))
    }

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<WatchStream>, Status> {
        let watch = Watch {
            service: Arc::clone(&self.service),
            is_known: is_known(&request.get_ref().service),
            sent: None,
            drain: request.extensions().get::<Drain>().cloned(),
        };
        Ok(Response::new(Box::pin(unfold(watch, next_status))))
    }
}

/// Waits for a status that differs from the last one; `None` when the connection should end.
async fn next_status(mut watch: Watch) -> Option<(Result<HealthCheckResponse, Status>, Watch)> {
    let service = Arc::clone(&watch.service);
    loop {
        let mut changed = pin!(service.readiness_changed());
        // A change after this line ends the wait, so none is missed.
        changed.as_mut().enable();
        let status = match watch.is_known {
            true => status(&service),
            false => ServingStatus::ServiceUnknown,
        };
        let response = response(status);
        if watch.sent != Some(response.status) {
            watch.sent = Some(response.status);
            return Some((Ok(response), watch));
        }
        match &mut watch.drain {
            Some(drain) => tokio::select! {
                () = changed => {}
                () = drain.requested() => return None,
            },
            None => changed.await,
        }
    }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

fn status(service: &Service) -> ServingStatus {
    if service.is_ready() { ServingStatus::Serving } else { ServingStatus::NotServing }
}

/// Returns whether this is the name of the server or of the rate limit service.
fn is_known(name: &str) -> bool {
    name.is_empty() || name == SERVICE_NAME
}
